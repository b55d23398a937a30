/// Comma-separated values (RFC 4180). Quoted fields may contain commas, quotes and line ends.
enum CSVReader {
    struct Row: Sendable, Equatable {
        /// The line where the row begins, from 1.
        let line: Int
        var fields: [String]
        var problem: Replay.Problem?
    }

    /// All rows except empty lines. A row has a problem if a quote is not closed or the text is not UTF-8.
    static func rows(_ bytes: [UInt8]) -> [Row] {
        var rows: [Row] = []
        var row = Row(line: 1, fields: [])
        var field: [UInt8] = []
        var isQuoted = false
        var wasQuoted = false
        var line = 1
        var quoteLine = 1
        var index = 0
        func isAt(_ offset: Int, _ character: Unicode.Scalar) -> Bool {
            offset < bytes.count && bytes[offset] == UInt8(ascii: character)
        }
        func endField() {
            if let text = String(validating: field, as: UTF8.self) {
                row.fields.append(text)
            } else {
                row.fields.append("")
                row.problem = Replay.Problem(line: row.line, reason: "it is not UTF-8")
            }
            field = []
            wasQuoted = false
        }
        func endRow() {
            endField()
            if row.fields != [""] || row.problem != nil { rows.append(row) }
            row = Row(line: line, fields: [])
        }
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\n") { line += 1 }
            if isQuoted {
                if byte != UInt8(ascii: "\"") {
                    field.append(byte)
                } else if isAt(index + 1, "\"") {
                    field.append(byte)
                    index += 1
                } else {
                    isQuoted = false
                }
            } else if byte == UInt8(ascii: "\""), field.isEmpty, !wasQuoted {
                isQuoted = true
                wasQuoted = true
                quoteLine = line
            } else if byte == UInt8(ascii: ",") {
                endField()
            } else if byte == UInt8(ascii: "\n") {
                endRow()
            } else if byte != UInt8(ascii: "\r") || !isAt(index + 1, "\n") {
                field.append(byte)
            }
            index += 1
        }
        if isQuoted {
            row.problem = Replay.Problem(
                line: quoteLine,
                reason: "the quote that opens here is never closed; nothing after it is read")
            rows.append(row)
        } else if !field.isEmpty || !row.fields.isEmpty {
            endRow()
        }
        return rows
    }
}
