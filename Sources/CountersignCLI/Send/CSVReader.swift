/// Comma-separated values (RFC 4180): fields may be quoted, and then hold commas, quotes and line ends.
enum CSVReader {
    struct Row: Sendable, Equatable {
        /// Where it begins, counted from 1.
        let line: Int
        var fields: [String]
    }

    /// Every row; empty lines are passed over. A quote that is never closed ends with the input.
    static func rows(_ bytes: [UInt8]) -> [Row] {
        var rows: [Row] = []
        var fields: [String] = []
        var field: [UInt8] = []
        var isQuoted = false
        var wasQuoted = false
        var line = 1
        var start = 1
        var index = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        func isAt(_ offset: Int, _ character: Unicode.Scalar) -> Bool {
            offset < bytes.count && bytes[offset] == UInt8(ascii: character)
        }
        func endField() {
            fields.append(String(decoding: field, as: UTF8.self))
            field = []
            wasQuoted = false
        }
        func endRow() {
            endField()
            if fields != [""] { rows.append(Row(line: start, fields: fields)) }
            fields = []
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
            } else if byte == UInt8(ascii: ",") {
                endField()
            } else if byte == UInt8(ascii: "\n") {
                endRow()
                start = line
            } else if byte != UInt8(ascii: "\r") || !isAt(index + 1, "\n") {
                field.append(byte)
            }
            index += 1
        }
        if !field.isEmpty || !fields.isEmpty { endRow() }
        return rows
    }
}
