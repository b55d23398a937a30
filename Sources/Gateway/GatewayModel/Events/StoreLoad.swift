package struct StoreLoad: Sendable {
    package var waitingBatches = 0
    package var waitingBytes = 0
    /// Bytes of the database and its write-ahead log.
    package var fileBytes = 0
    /// Free bytes for this process; nil when the storage is on another machine.
    package var freeBytes: Int?
    /// Nil if the storage is a data directory.
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
