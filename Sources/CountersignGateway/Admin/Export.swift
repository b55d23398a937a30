/// Answers that are files: CSV (RFC 4180) or one JSON object a line.
enum Export {
    static let format = AdminRoute.Parameter("format", .choice(["ndjson", "csv"]))
    static let mediaTypes = ["application/x-ndjson", "text/csv"]

    static func isCSV(_ call: AdminCall) -> Bool { call.query("format") == "csv" }

    /// Appends a line of CSV. A cell that a spreadsheet would take for a formula gets an apostrophe in front.
    static func write(_ cells: [String], to output: inout [UInt8]) {
        for (index, cell) in cells.enumerated() {
            if index > 0 { output.append(UInt8(ascii: ",")) }
            let isFormula = "=+-@\t\r".utf8.contains(cell.utf8.first ?? 0) && Int64(cell) == nil
            let text = isFormula ? "'" + cell : cell
            if text.utf8.contains(where: { ",\"\r\n".utf8.contains($0) }) {
                // Byte by byte: a quote with a combining mark behind it is another character, and still a quote.
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

    static func response(isCSV: Bool, name: String, body: [UInt8] = []) -> HTTPResponse {
        HTTPResponse(
            status: 200,
            headers: [
                ("Content-Type", isCSV ? "text/csv; charset=utf-8" : "application/x-ndjson"),
                ("Content-Disposition", "attachment; filename=\"\(name).\(isCSV ? "csv" : "ndjson")\""),
            ] + AdminAPI.headers, body: body)
    }
}
