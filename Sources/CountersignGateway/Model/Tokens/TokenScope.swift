/// What tokens of the token service are good for (RFC 6749, section 3.3).
enum TokenScope {
    /// Writing events. The word that Segment's clients ask for.
    static let writeEvents = "tracking_api:write"
    /// All that there is.
    static let all = writeEvents

    /// True when every word of `asked` is one of `granted`.
    static func contains(_ granted: String, _ asked: String) -> Bool {
        let granted = granted.split(separator: " ")
        return asked.split(separator: " ").allSatisfy(granted.contains)
    }
}
