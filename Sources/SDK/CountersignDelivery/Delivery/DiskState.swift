/// Which writes fail now, and why.
struct DiskState {
    enum Operation {
        /// Writes to the log or the identity file.
        case log
        /// Moving the log's events to the queue file.
        case checkpoint
    }

    private var failing: Set<Operation> = []
    private(set) var lastError: String?

    func isFailing(_ operation: Operation) -> Bool { failing.contains(operation) }

    /// Returns true if the operation did not fail before.
    @discardableResult
    mutating func failed(_ operation: Operation, _ error: String) -> Bool {
        lastError = error
        return failing.insert(operation).inserted
    }

    /// Returns true if the operation failed before.
    @discardableResult
    mutating func succeeded(_ operation: Operation) -> Bool {
        let wasFailing = failing.remove(operation) != nil
        if failing.isEmpty { lastError = nil }
        return wasFailing
    }
}
