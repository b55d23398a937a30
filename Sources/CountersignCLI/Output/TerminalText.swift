/// What a client sent, on a terminal.
enum TerminalText {
    /// The text with every control character replaced, so that it can neither move the cursor nor change colours.
    static func safe(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    switch scalar.properties.generalCategory {
                    case .control, .format, .lineSeparator, .paragraphSeparator: "\u{FFFD}"
                    default: scalar
                    }
                }))
    }
}

/// Colours by what they say.
enum TerminalColor: Int, Sendable {
    case bad = 31
    case good = 32
    case doubtful = 33
}
