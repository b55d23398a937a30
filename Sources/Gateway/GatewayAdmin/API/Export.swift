internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

/// Responses as files: CSV (RFC 4180) or one JSON object per line.
enum Export {
    static let format = JSONMember.may("format", .choice(["ndjson", "csv"]))
    static let mediaTypes = ["application/x-ndjson", "text/csv"]

    static func isCSV(_ call: AdminCall) -> Bool { call.query("format") == "csv" }

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

    struct Row: Sendable {
        private let makeCells: @Sendable () -> [String]
        let line: [UInt8]

        init(cells: @autoclosure @escaping @Sendable () -> [String], line: [UInt8]) {
            makeCells = cells
            self.line = line
        }

        var cells: [String] { makeCells() }
    }

    static func list(
        _ call: AdminCall, name: String, columns: [String], from start: Int64,
        page: @escaping @Sendable (Int64) throws -> (rows: [Row], next: Int64?)
    ) -> HTTPResponse {
        let isCSV = isCSV(call)
        let state = Lock<(next: Int64?, hasBegun: Bool)>((start, false))
        let stream = ListStream {
            let (position, hasBegun) = state.withLock { $0 }
            guard let position else { return nil }
            let (rows, next) = try page(position)
            state.withLock { $0 = (next, true) }
            var bytes: [UInt8] = []
            if isCSV, !hasBegun { write(columns, to: &bytes) }
            for row in rows {
                if isCSV {
                    write(row.cells, to: &bytes)
                } else {
                    bytes.append(contentsOf: row.line)
                    bytes.append(0x0A)
                }
            }
            return bytes
        }
        var response = response(isCSV: isCSV, name: name)
        response.stream = stream.body
        return response
    }

    static func response(isCSV: Bool, name: String, body: [UInt8] = []) -> HTTPResponse {
        HTTPResponse(
            status: 200,
            headers: [
                ("Content-Type", isCSV ? "text/csv; charset=utf-8" : "application/x-ndjson"),
                ("Content-Disposition", "attachment; filename=\"\(name).\(isCSV ? "csv" : "ndjson")\""),
            ] + AdminAnswer.headers, body: body)
    }
}
