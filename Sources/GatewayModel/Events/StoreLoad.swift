/// How much the store has to do and to hold.
package struct StoreLoad: Sendable {
    package var waitingBatches = 0
    package var waitingBytes = 0
    /// Bytes of the database and its log.
    package var fileBytes = 0
    /// Bytes that this process may still write there; nil where the disk is another machine's.
    package var freeBytes: Int?
    /// Nil where events are kept in a data directory.
    package var database: DatabaseLoad?

    package init(
        waitingBatches: Int = 0, waitingBytes: Int = 0, fileBytes: Int = 0, freeBytes: Int? = nil,
        database: DatabaseLoad? = nil
    ) {
        self.database = database
        self.waitingBatches = waitingBatches
        self.waitingBytes = waitingBytes
        self.fileBytes = fileBytes
        self.freeBytes = freeBytes
    }
}
