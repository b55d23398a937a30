package import CountersignCore

extension EventKind {
    package static let storedWords = (all + [.location]).map(\.rawValue)
}
