package import CountersignCore

extension JSONNode {
    /// A copy that is independent of the parser's memory.
    package var value: JSONValue {
        switch kind {
        case .null: .null
        case .bool: .bool(bool ?? false)
        case .number: int64.map { .integer($0) } ?? .number(double ?? 0)
        case .string: .string(string ?? "")
        case .array: .array(elements.map(\.value))
        case .object:
            .object(
                JSONObject(
                    members.map { (String(decoding: $0.name, as: UTF8.self), $0.value.value) },
                    uniquingKeysWith: { _, last in last }))
        }
    }

    /// Compact JSON with members sorted by the bytes of their names.
    package var canonicalBytes: [UInt8] {
        var output: [UInt8] = []
        writeCanonically(to: &output)
        return output
    }

    private func writeCanonically(to output: inout [UInt8]) {
        switch kind {
        case .array:
            output.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                element.writeCanonically(to: &output)
            }
            output.append(UInt8(ascii: "]"))
        case .object:
            output.append(UInt8(ascii: "{"))
            let sorted = Array(members).sorted { $0.name.lexicographicallyPrecedes($1.name) }
            for (index, member) in sorted.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                JSONValue.write(String(decoding: member.name, as: UTF8.self), to: &output)
                output.append(UInt8(ascii: ":"))
                member.value.writeCanonically(to: &output)
            }
            output.append(UInt8(ascii: "}"))
        case .number where tag == UInt8(ascii: "u"):
            // An integer above `Int64.max`, of which a `JSONValue` would lose digits.
            output.append(contentsOf: "\(words[index + 1])".utf8)
        default: value.write(to: &output)
        }
    }
}
