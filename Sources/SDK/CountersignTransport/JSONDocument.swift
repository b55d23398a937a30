package import CountersignCore

package enum JSONDocument {
    /// Nil if the text is not JSON.
    package static func value(_ bytes: [UInt8]) -> JSONValue? { JSONParser.value(bytes) }

    /// Returns a truncated text that begins with an object, with the object closed after its last complete member.
    static func closingTruncatedObject(_ text: [UInt8]) -> [UInt8] {
        var depth = 0
        var isInString = false
        var isEscaped = false
        var end: Int?
        for (index, byte) in text.enumerated() {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if depth <= 0 { return Array(text[...index]) }
            case UInt8(ascii: ",") where depth == 1: end = index
            default: break
            }
        }
        return end.map { text[..<$0] + [UInt8(ascii: "}")] } ?? text
    }

    /// Nil if the text is not a JSON object.
    package static func object(_ bytes: [UInt8]) -> JSONObject? {
        guard case .object(let members) = value(bytes) else { return nil }
        return members
    }
}
