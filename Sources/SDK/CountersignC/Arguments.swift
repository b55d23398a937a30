internal import CountersignCore
internal import CountersignDelivery
internal import Foundation

/// Reads the members of a JSON object with type checks. Null counts as missing. Errors have the member's path.
struct Arguments: Sendable {
    let members: JSONObject
    private let path: String
    private let code: CountersignError.Code

    init(_ members: JSONObject, path: String = "", code: CountersignError.Code = .invalidArgument) {
        self.members = members.filter { $0.value != .null }
        self.path = path
        self.code = code
    }

    var configuration: Arguments { Arguments(members, path: path, code: .invalidConfiguration) }

    func wrong(_ name: String, _ expected: String) -> CountersignError {
        CountersignError(code, "\(path)\(name) must be \(expected)")
    }

    /// Throws if there is a member not in `names`.
    func allow(_ names: Set<String>) throws(CountersignError) {
        guard let unknown = members.keys.filter({ !names.contains($0) }).min() else { return }
        throw CountersignError(code, "there is no \(path)\(unknown)")
    }

    private func value<Value>(
        _ name: String, _ expected: String, _ read: (JSONValue) -> Value?
    ) throws(CountersignError) -> Value? {
        guard let value = members[name] else { return nil }
        guard let result = read(value) else { throw wrong(name, expected) }
        return result
    }

    func string(_ name: String) throws(CountersignError) -> String? { try value(name, "a text", \.string) }

    func number(_ name: String) throws(CountersignError) -> Double? { try value(name, "a number", \.double) }

    func integer(_ name: String) throws(CountersignError) -> Int? {
        try value(name, "a whole number") { $0.double.flatMap { Int(exactly: $0) } }
    }

    func bool(_ name: String) throws(CountersignError) -> Bool? {
        try value(name, "true or false") { if case .bool(let flag) = $0 { flag } else { nil } }
    }

    func object(_ name: String) throws(CountersignError) -> JSONObject? {
        try value(name, "an object", \.object)
    }

    func array(_ name: String) throws(CountersignError) -> [JSONValue]? {
        try value(name, "a list", \.array)
    }

    func texts(_ name: String) throws(CountersignError) -> [String: String]? {
        try value(name, "an object of texts", \.texts)
    }

    /// Empty if missing.
    func group(_ name: String) throws(CountersignError) -> Arguments {
        Arguments(try object(name) ?? [:], path: "\(path)\(name).", code: code)
    }

    /// Throws if the string is missing or empty.
    func required(_ name: String) throws(CountersignError) -> String {
        guard let text = try string(name), !text.isEmpty else {
            throw wrong(name, "a text that is not empty")
        }
        return text
    }

    // MARK: Members common to the configurations

    func folder() throws(CountersignError) -> URL? {
        try string("dataDirectory").map { URL(fileURLWithPath: $0) }
    }

    func context() throws(CountersignError) -> EventContext { try EventContext(object("context") ?? [:]) }

    /// Passes lines to the event callback if there is one, otherwise to `CountersignLog.standard`.
    func log(_ callbacks: Callbacks) throws(CountersignError) -> CountersignLog? {
        let least: CountersignLog.Level
        switch try string("logLevel") {
        case "debug": least = .debug
        case "info": least = .info
        case nil, "warning": least = .warning
        case "none": return nil
        default: throw wrong("logLevel", "debug, info, warning or none")
        }
        guard callbacks.hasListener else { return .standard(least) }
        return CountersignLog(isEnabled: { $0 >= least }) { [weak callbacks] level, message, values in
            callbacks?.send([
                "event": "log", "level": .string("\(level)"), "message": .string(message),
                "values": .object(JSONObject(values.mapValues { .string($0) })),
            ])
        }
    }

    func retry(_ name: String, _ policy: inout RetryPolicy) throws(CountersignError) {
        let group = try group(name)
        try group.allow(["baseDelay", "maximumDelay", "maximumServerDelay", "maximumFailures"])
        policy.baseDelay = try group.number("baseDelay") ?? policy.baseDelay
        policy.maximumDelay = try group.number("maximumDelay") ?? policy.maximumDelay
        policy.maximumServerDelay = try group.number("maximumServerDelay") ?? policy.maximumServerDelay
        policy.maximumFailures = try group.integer("maximumFailures") ?? policy.maximumFailures
    }
}
