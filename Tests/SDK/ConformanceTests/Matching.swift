import CountersignCore
import CountersignDelivery

/// Compares a client's behaviour with a scenario. Members that the scenario does not name are ignored.
enum Matching {
    /// Returns a description of the first difference; nil if the values match.
    static func difference(_ expected: JSONValue, _ observed: JSONValue, at path: String = "") -> String? {
        switch (expected, observed) {
        case (.object(let members), _) where members["at_most"] != nil || members["at_least"] != nil:
            guard let value = observed.double, let most = (members["at_most"] ?? .number(.infinity)).double,
                let least = (members["at_least"] ?? .number(-.infinity)).double,
                (least...most).contains(value)
            else { return description(expected, observed, path) }
            return nil
        case (.object(let members), .object(let all)):
            return members.keys.sorted().lazy.compactMap { name in
                difference(members[name] ?? .null, all[name] ?? .null, at: "\(path).\(name)")
            }.first
        case (.array(let elements), .array(let others)):
            guard elements.count == others.count else { return description(expected, observed, path) }
            return elements.indices.lazy.compactMap { index in
                difference(elements[index], others[index], at: "\(path)[\(index)]")
            }.first
        case (.string(let text), .string(let other)):
            return Scenario.token(text) == other ? nil : description(expected, observed, path)
        default:
            if expected == observed { return nil }
            if let one = expected.double, let other = observed.double, one == other { return nil }
            return description(expected, observed, path)
        }
    }

    private static func description(_ expected: JSONValue, _ observed: JSONValue, _ path: String) -> String {
        func text(_ value: JSONValue) -> String { String(decoding: value.bytes, as: UTF8.self) }
        return "\(path.drop { $0 == "." }): expected \(text(expected)), was \(text(observed))"
    }
}
