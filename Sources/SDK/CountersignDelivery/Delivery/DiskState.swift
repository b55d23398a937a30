/// The kinds of writes that fail now, and the last error.
struct DiskState {
    enum Operation {
        /// Writes to the log or the identity file.
        case log
        case checkpoint
    }

    private var failing: Set<Operation> = []
    private(set) var lastError: String?

    func isFailing(_ operation: Operation) -> Bool { failing.contains(operation) }

    @discardableResult
    mutating func failed(_ operation: Operation, _ error: String) -> Bool {
        lastError = error
        return failing.insert(operation).inserted
    }

    @discardableResult
    mutating func succeeded(_ operation: Operation) -> Bool {
        let wasFailing = failing.remove(operation) != nil
        if failing.isEmpty { lastError = nil }
        return wasFailing
    }
}
