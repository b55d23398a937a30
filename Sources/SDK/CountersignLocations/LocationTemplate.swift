internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// JSON with `<%= tag %>` in place of values.
struct LocationTemplate {
    let text: String

    private static let paths: [String: [String]] = [
        "latitude": ["coords", "latitude"], "longitude": ["coords", "longitude"],
        "speed": ["coords", "speed"],
        "heading": ["coords", "heading"], "accuracy": ["coords", "accuracy"],
        "altitude": ["coords", "altitude"], "altitude_accuracy": ["coords", "altitude_accuracy"],
        "activity.type": ["activity", "type"], "activity.confidence": ["activity", "confidence"],
        "battery.level": ["battery", "level"], "battery.is_charging": ["battery", "is_charging"],
        "timestamp": ["timestamp"], "uuid": ["uuid"], "event": ["event"], "odometer": ["odometer"],
        "odometer_error": ["odometer_error"], "mock": ["mock"], "is_moving": ["is_moving"],
        "timestampMeta": ["timestampMeta"],
    ]

    /// Nil if the result is not a JSON object or array.
    func render(_ object: JSONObject) -> JSONValue? {
        var output = ""
        var rest = text[...]
        while let start = rest.range(of: "<%=") {
            guard let end = rest.range(of: "%>", range: start.upperBound..<rest.endIndex) else { return nil }
            output += rest[..<start.lowerBound]
            output += Self.value(of: rest[start.upperBound..<end.lowerBound], in: object)
            rest = rest[end.upperBound...]
        }
        output += rest
        var extras: JSONObject = [:]
        if let members = object["extras"]?.object { extras = members }
        switch JSONDocument.value(Array(output.utf8)) {
        case .object(let members): return .object(members.merging(extras) { own, _ in own })
        case .array(let elements): return .array(extras.isEmpty ? elements : elements + [.object(extras)])
        default: return nil
        }
    }

    /// Returns a value as JSON, but a string without its quotes, because the template has the quotes.
    private static func value(of tag: Substring, in object: JSONObject) -> String {
        let name = tag.split(whereSeparator: \.isWhitespace).joined()
        let path = paths[name] ?? name.split(separator: ".").map(String.init)
        var value = JSONValue.object(object)
        for step in path {
            guard case .object(let members) = value, let next = members[step] else { return "null" }
            value = next
        }
        let json = String(decoding: value.bytes, as: UTF8.self)
        guard case .string = value else { return json }
        return String(json.dropFirst().dropLast())
    }
}
