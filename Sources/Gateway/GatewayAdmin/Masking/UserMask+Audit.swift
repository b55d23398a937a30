internal import GatewayModel

extension UserMask {
    static let hidden = "…"

    /// Viewers see no values, which may name users, and no hashes, which would confirm a guessed user id.
    func audit(_ entry: AuditEntry) -> AuditEntry {
        guard hides else { return entry }
        var shown = entry
        shown.hash = []
        shown.previousHash = []
        shown.before = nil
        shown.after = nil
        shown.target = target(of: entry)
        return shown
    }

    private func target(of entry: AuditEntry) -> String {
        switch entry.subject {
        case .operators: return entry.target
        // Pseudonyms are per app.
        case .user: return entry.appID.flatMap { user(entry.target, of: $0) } ?? Self.hidden
        // Operators choose the ids of messages, and an id may contain the recipient's name.
        case .message:
            guard let slash = entry.target.utf8.firstIndex(of: UInt8(ascii: "/")) else { return entry.target }
            return entry.target[...slash] + Self.hidden
        case .unknown: return Self.hidden
        }
    }
}
