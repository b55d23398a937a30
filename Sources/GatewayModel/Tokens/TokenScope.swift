internal import CountersignCore

/// What tokens of the token service may be used for (RFC 6749, section 3.3).
package enum TokenScope {
    /// Writing events. The word that Segment's clients ask for.
    static let writeEvents = "tracking_api:write"
    /// All that there is.
    package static let all = writeEvents

    /// The longest scope that is looked at: there is no reason to ask for much more than there is.
    static let maximumBytes = 1_024

    /// True when every word of `asked`, which is not too long, is one of `granted`.
    package static func contains(_ granted: String, _ asked: String) -> Bool {
        guard asked.utf8.count <= maximumBytes else { return false }
        let granted = granted.split(separator: " ")
        return asked.split(separator: " ").allSatisfy(granted.contains)
    }
}
