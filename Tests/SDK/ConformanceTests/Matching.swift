import CountersignCore

/// Compares a client's behaviour with a scenario. Members that the scenario does not name are ignored.
enum Matching {
    /// Returns a description of the first difference; nil if the values match.
    static func difference(_ expected: JSONValue, _ observed: JSONValue, at path: String = "") -> String? {
        switch (expected, observed) {
        case (.object(let members), _) where members["at_most"] != nil || members["at_least"] != nil:
            guard let value = number(observed), let most = number(members["at_most"] ?? .number(.infinity)),
                let least = number(members["at_least"] ?? .number(-.infinity)), (least...most).contains(value)
            else { return words(expected, observed, path) }
            return nil
        case (.object(let members), .object(let all)):
            return members.keys.sorted().lazy.compactMap { name in
                difference(members[name] ?? .null, all[name] ?? .null, at: "\(path).\(name)")
            }.first
        case (.array(let elements), .array(let others)):
            guard elements.count == others.count else { return words(expected, observed, path) }
            return elements.indices.lazy.compactMap { index in
                difference(elements[index], others[index], at: "\(path)[\(index)]")
            }.first
        case (.string(let text), .string(let other)):
            return Scenario.token(text) == other ? nil : words(expected, observed, path)
        default:
            if expected == observed { return nil }
            if let one = number(expected), let other = number(observed), one == other { return nil }
            return words(expected, observed, path)
        }
    }

    private static func number(_ value: JSONValue) -> Double? {
        switch value {
        case .integer(let integer): Double(integer)
        case .number(let number): number
        default: nil
        }
    }

    private static func words(_ expected: JSONValue, _ observed: JSONValue, _ path: String) -> String {
        func text(_ value: JSONValue) -> String { String(decoding: value.bytes, as: UTF8.self) }
        return "\(path.drop { $0 == "." }): expected \(text(expected)), was \(text(observed))"
    }
}
