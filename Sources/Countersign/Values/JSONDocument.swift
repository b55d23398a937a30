package import CountersignCore
internal import Foundation

/// JSON text as values.
package enum JSONDocument {
    private struct Node: Decodable {
        let value: JSONValue

        init(from decoder: any Decoder) throws {
            // What is common first: each kind that a value is not costs an error.
            let single = try decoder.singleValueContainer()
            if let text = try? single.decode(String.self) {
                value = .string(text)
            } else if let object = try? decoder.container(keyedBy: Name.self) {
                var members: JSONObject = [:]
                for key in object.allKeys {
                    members[key.stringValue] = try object.decode(Node.self, forKey: key).value
                }
                value = .object(members)
            } else if let bool = try? single.decode(Bool.self) {
                value = .bool(bool)
            } else if let integer = try? single.decode(Int64.self) {
                value = .integer(integer)
            } else if var array = try? decoder.unkeyedContainer() {
                var elements: [JSONValue] = []
                while !array.isAtEnd { elements.append(try array.decode(Node.self).value) }
                value = .array(elements)
            } else {
                value = (try? single.decode(Double.self)).map { .number($0) } ?? .null
            }
        }
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) {
            self.stringValue = stringValue
        }

        init?(intValue: Int) {
            return nil
        }
    }

    /// Returns nil if the text is not JSON.
    package static func value(_ bytes: [UInt8]) -> JSONValue? {
        (try? JSONDecoder().decode(Node.self, from: Data(bytes)))?.value
    }

    /// The object at the beginning of a truncated text, closed after its last complete member; the text as it is if there is
    /// no such object.
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

    /// Returns nil if the text is not a JSON object.
    package static func object(_ bytes: [UInt8]) -> JSONObject? {
        guard case .object(let members) = value(bytes) else { return nil }
        return members
    }
}
