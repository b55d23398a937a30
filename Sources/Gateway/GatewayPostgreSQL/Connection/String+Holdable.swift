internal import CountersignCore

extension String {
    /// The text with U+FFFD instead of U+0000, which PostgreSQL cannot store.
    var holdable: String { utf8.contains(0) ? replacing("\0", with: "\u{FFFD}") : self }
}
