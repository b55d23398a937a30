/// Writes CSV (RFC 4180) that spreadsheets open safely.
enum CSV {
    /// Appends a line of CSV, with an apostrophe before text that a spreadsheet could interpret as a formula.
    static func write(_ cells: [String], to output: inout [UInt8]) {
        for (index, cell) in cells.enumerated() {
            if index > 0 { output.append(UInt8(ascii: ",")) }
            let text = Int64(cell) == nil ? withoutFormulas(cell) : cell
            if text.utf8.contains(where: { ",;\t\"\r\n".utf8.contains($0) }) {
                // Byte by byte: Swift combines a quote and a following combining mark into one character.
                output.append(UInt8(ascii: "\""))
                for byte in text.utf8 {
                    if byte == UInt8(ascii: "\"") { output.append(byte) }
                    output.append(byte)
                }
                output.append(UInt8(ascii: "\""))
            } else {
                output.append(contentsOf: text.utf8)
            }
        }
        output.append(contentsOf: "\r\n".utf8)
    }

    /// Spreadsheets in many languages use `;`, a tab or `|` as the separator, and ignore quotes in the middle
    /// of a line. So a cell may begin after each of these and after a line break. Blanks and quotes are
    /// skipped, because some spreadsheets drop them. A comma is no problem: with it as the separator, the
    /// quotes are respected.
    private static func withoutFormulas(_ cell: String) -> String {
        guard let first = cell.unicodeScalars.first else { return cell }
        var text = String.UnicodeScalarView()
        var begins = true
        if lineBreaks.contains(first) { text.append("'") }
        for scalar in cell.unicodeScalars {
            if begins, formulaSigns.contains(scalar) { text.append("'") }
            begins =
                lineBreaks.contains(scalar) || scalar == ";" || scalar == "|"
                || begins && (scalar == " " || scalar == "\u{A0}" || scalar == "\"" || scalar == "\u{FEFF}")
            text.append(scalar)
        }
        return String(text)
    }

    private static let lineBreaks: Set<Unicode.Scalar> = ["\t", "\r", "\n", "\u{B}", "\u{C}"]
    /// Includes full-width and small forms, which some input methods produce and some spreadsheets accept.
    private static let formulaSigns: Set<Unicode.Scalar> = [
        "=", "+", "-", "@", "\u{FF1D}", "\u{FF0B}", "\u{FF0D}", "\u{FF20}", "\u{FE66}", "\u{FE62}",
        "\u{FE63}",
        "\u{FE6B}",
    ]
}
