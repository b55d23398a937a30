/// How much the store has to do and to hold.
package struct StoreLoad: Sendable {
    package var waitingBatches = 0
    package var waitingBytes = 0
    /// Bytes of the database and its log.
    package var fileBytes = 0
    /// Bytes that this process may still write there.
    package var freeBytes = 0

    package init(waitingBatches: Int = 0, waitingBytes: Int = 0, fileBytes: Int = 0, freeBytes: Int = 0) {
        self.waitingBatches = waitingBatches
        self.waitingBytes = waitingBytes
        self.fileBytes = fileBytes
        self.freeBytes = freeBytes
    }
}
