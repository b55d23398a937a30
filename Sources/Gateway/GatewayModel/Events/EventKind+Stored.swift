package import CountersignCore

extension EventKind {
    /// The raw values of all kinds that a gateway stores, in any dialect.
    package static let storedWords = (all + [.location]).map(\.rawValue)
}
