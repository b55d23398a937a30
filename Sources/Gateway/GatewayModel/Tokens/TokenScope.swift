internal import CountersignCore

/// Scopes of the token service's tokens (RFC 6749, section 3.3).
package enum TokenScope {
    /// Permission to write events. Segment's clients request it by this name.
    package static let all = "tracking_api:write"

    /// The maximum length of a requested scope, in bytes.
    static let maximumBytes = 1_024

    /// Whether every requested scope is granted. False for a request longer than ``maximumBytes``.
    package static func contains(_ granted: String, _ asked: String) -> Bool {
        guard asked.utf8.count <= maximumBytes else { return false }
        let granted = granted.split(separator: " ")
        return asked.split(separator: " ").allSatisfy(granted.contains)
    }
}
