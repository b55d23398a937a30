/// Makes untrusted text safe for a terminal.
enum TerminalText {
    /// The text with control and format characters replaced, so that it cannot move the cursor or change colours.
    /// U+200C and U+200D (joiners) are not replaced, because emoji and some scripts need them.
    static func safe(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    switch scalar.properties.generalCategory {
                    case .format where ["\u{200C}", "\u{200D}"].contains(scalar): scalar
                    case .control, .format, .lineSeparator, .paragraphSeparator: "\u{FFFD}"
                    default: scalar
                    }
                }))
    }

    /// Like ``safe(_:)`` for several lines. Keeps LF and CR LF, which is one `Character`.
    static func safe(lines: String) -> String {
        lines.map { $0 == "\n" || $0 == "\r\n" ? String($0) : safe(String($0)) }.joined()
    }

    /// Escapes characters that a terminal may execute or that change the direction of text: U+0080 to U+009F,
    /// directional formatting characters and separators. JSON strings have U+0000 to U+001F only as escapes (RFC 8259).
    static func escaped(json: String) -> String {
        guard json.utf8.contains(where: { $0 >= 0x80 }) else { return json }
        var shown = ""
        for scalar in json.unicodeScalars {
            switch scalar.value {
            case 0x80...0x9F, 0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069:
                let digits = String(scalar.value, radix: 16)
                shown += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }
}

/// Colours by meaning. Raw values are SGR codes (ECMA-48, 8.3.117).
enum TerminalColor: Int, Sendable {
    case bad = 31
    case good = 32
    case doubtful = 33
}
