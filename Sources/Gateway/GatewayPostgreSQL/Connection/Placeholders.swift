/// Converts SQLite's placeholders outside quotes to PostgreSQL's: `?` and `?3` become `$1` and `$3`.
enum Placeholders {
    static func numbered(_ sql: String) -> String {
        guard sql.utf8.contains(UInt8(ascii: "?")) else { return sql }
        var output: [UInt8] = []
        output.reserveCapacity(sql.utf8.count + 16)
        var last = 0
        var quote: UInt8?
        var bytes = sql.utf8.makeIterator()
        var next = bytes.next()
        while let byte = next {
            next = bytes.next()
            if let open = quote {
                if byte == open { quote = nil }
            } else if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
                quote = byte
            } else if byte == UInt8(ascii: "?") {
                var number = 0
                while let digit = next, digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") {
                    number = number * 10 + Int(digit - UInt8(ascii: "0"))
                    next = bytes.next()
                }
                if number == 0 { number = last + 1 }
                last = max(last, number)
                output.append(UInt8(ascii: "$"))
                output.append(contentsOf: String(number).utf8)
                continue
            }
            output.append(byte)
        }
        return String(decoding: output, as: UTF8.self)
    }
}
