internal import CountersignCore

extension String {
    /// The text as PostgreSQL can hold it: U+FFFD instead of each U+0000.
    var holdable: String { utf8.contains(0) ? replacing("\0", with: "\u{FFFD}") : self }
}
