public import CountersignCore
internal import Foundation

extension BloomreachConfiguration {
    /// Creates a configuration from a map with the keys of the vendor's Flutter SDK, or of the property list on iOS.
    ///
    /// `projectToken` and `authorizationToken`, in a property list `authorization` (the bare API key, or `Token` and
    /// the key), are required. Also read are `baseUrl`, `projectMapping`, `defaultProperties`,
    /// `allowDefaultCustomerProperties`, `advancedAuthEnabled`, `applicationId`, `sessionTimeout` in seconds,
    /// `automaticSessionTracking`, `manualSessionAutoClose`, `pushTokenTrackingFrequency` (`ON_TOKEN_CHANGE`,
    /// `EVERY_LAUNCH`, `DAILY`). Additional keys are `ExponeaAuthProvider`, the provider's class as in the Android
    /// manifest; `flushMode` (`IMMEDIATE`, `MANUAL`, `AUTOMATIC`, `PERIOD` with `flushPeriod` in seconds), `platform`,
    /// `authorizationProviderTimeout` in seconds, `logLevel` (`debug`, `info`, `warning`, `none`), `instanceName`,
    /// `dataDirectory`, `headers`, and `context` with `parts` (`app`, `os`, `device`, `locale`), `appVersion` and
    /// `appBuild`. Other keys have no effect and are logged once by the client. Null values count as missing.
    ///
    /// Errors of a provider are logged with the texts of the vendor's SDK for the `platform`; default: iOS on Apple's
    /// systems, and Android elsewhere.
    ///
    /// - Parameter map: The map.
    /// - Throws: `invalidConfiguration`, which names the key.
    public init(map: JSONObject) throws(CountersignError) {
        let reader = MapReader(members: map)
        func either(_ name: String, _ other: String) -> String { reader.members[name] == nil ? other : name }
        let project = try reader.project(defaultBaseURL: nil)
        self.init(project: project)
        for (kind, value) in try reader.object("projectMapping") ?? [:] where value != .null {
            guard let elements = value.array else {
                throw reader.wrong("projectMapping", "lists of projects")
            }
            var projects: [BloomreachProject] = []
            for element in elements {
                guard let members = element.object else {
                    throw reader.wrong("projectMapping", "lists of projects")
                }
                projects.append(
                    try MapReader(members: members).project(
                        defaultBaseURL: project.baseURL.absoluteString))
            }
            projectMapping[BloomreachEventKind(rawValue: kind)] = projects
        }
        defaultProperties = try reader.object("defaultProperties") ?? [:]
        allowDefaultCustomerProperties = try reader.bool("allowDefaultCustomerProperties") ?? true
        if let members = try reader.object("context") { context = try EventContext(members) }
        headers = try reader.texts("headers") ?? headers
        advancedAuthEnabled = try reader.bool("advancedAuthEnabled") ?? false
        applicationID = try reader.string(either("applicationId", "applicationID"))
        automaticSessionTracking =
            try reader.bool(either("automaticSessionTracking", "autoSessionTracking")) ?? true
        manualSessionAutoClose = try reader.bool("manualSessionAutoClose") ?? true
        if let seconds = try reader.number("sessionTimeout") {
            guard seconds >= 0 else { throw reader.wrong("sessionTimeout", "seconds, 0 or more") }
            sessionTimeout = seconds
        }
        pushTokenFrequency =
            try reader.frequency(either("pushTokenTrackingFrequency", "tokenTrackFrequency"))
            ?? pushTokenFrequency
        switch try reader.string("logLevel") {
        case nil: break
        case "debug": logLevel = .debug
        case "info": logLevel = .info
        case "warning": logLevel = .warning
        case "none": logLevel = nil
        default: throw reader.wrong("logLevel", "debug, info, warning or none")
        }
        authorizationProvider = try reader.string("ExponeaAuthProvider").map { .className($0) }
        authorizationProviderTimeout =
            try reader.number("authorizationProviderTimeout") ?? authorizationProviderTimeout
        if let given = try reader.string("platform") {
            platform = given
            wording = given == "ios" ? .ios : .android
        } else {
            #if canImport(Darwin)
                wording = .ios
            #else
                wording = .android
            #endif
        }
        instanceName = try reader.string("instanceName") ?? instanceName
        dataDirectory = try reader.string("dataDirectory").map { URL(fileURLWithPath: $0) }
        flushPolicy = try reader.flushPolicy() ?? flushPolicy
        given = reader.unread()
    }
}

extension MapReader {
    private static let known: Set = [
        "projectToken", "authorizationToken", "authorization", "baseUrl", "projectMapping",
        "defaultProperties", "allowDefaultCustomerProperties", "advancedAuthEnabled", "applicationId",
        "applicationID", "automaticSessionTracking", "autoSessionTracking", "manualSessionAutoClose",
        "sessionTimeout", "pushTokenTrackingFrequency", "tokenTrackFrequency", "ExponeaAuthProvider",
        "authorizationProviderTimeout", "platform", "logLevel", "instanceName", "dataDirectory", "flushMode",
        "flushPeriod", "context", "headers",
    ]

    /// The keys without effect, such as `ios.appGroup`.
    fileprivate func unread() -> [String] {
        members.filter { !Self.known.contains($0.key) }.flatMap { key, value in
            guard ["ios", "android"].contains(key), let object = value.object, !object.isEmpty else {
                return [key]
            }
            return object.filter { $0.value != .null }.keys.map { "\(key).\($0)" }
        }
    }

    fileprivate func frequency(_ key: String) throws(CountersignError) -> PushTokenFrequency? {
        guard let word = try string(key) else { return nil }
        // `ON_TOKEN_CHANGE` in a map, `onTokenChange` in a property list.
        let frequency = PushTokenFrequency.allCases.first { frequency in
            [frequency.rawValue, frequency.rawValue.replacingOccurrences(of: "_", with: "")].contains(
                word.uppercased())
        }
        guard let frequency else { throw wrong(key, "ON_TOKEN_CHANGE, EVERY_LAUNCH or DAILY") }
        return frequency
    }
}

/// Reads the members of a configuration map. Null counts as missing. Throws an error with the member's name if its
/// type is wrong.
private struct MapReader {
    let members: JSONObject

    init(members: JSONObject) {
        self.members = members.filter { $0.value != .null }
    }

    func wrong(_ key: String, _ expected: String) -> CountersignError {
        CountersignError(.invalidConfiguration, "\(key) must be \(expected)")
    }

    private func value<Value>(
        _ key: String, _ expected: String, _ read: (JSONValue) -> Value?
    ) throws(CountersignError) -> Value? {
        guard let value = members[key] else { return nil }
        guard let result = read(value) else { throw wrong(key, expected) }
        return result
    }

    func string(_ key: String) throws(CountersignError) -> String? { try value(key, "a text", \.string) }

    func bool(_ key: String) throws(CountersignError) -> Bool? { try value(key, "true or false", \.bool) }

    func number(_ key: String) throws(CountersignError) -> Double? { try value(key, "a number", \.numeric) }

    func object(_ key: String) throws(CountersignError) -> JSONObject? {
        try value(key, "an object", \.object)
    }

    func texts(_ key: String) throws(CountersignError) -> [String: String]? {
        try value(key, "an object of texts", \.texts)
    }

    func project(defaultBaseURL: String?) throws(CountersignError) -> BloomreachProject {
        guard let token = try string("projectToken") else { throw wrong("projectToken", "given") }
        let key = members["authorizationToken"] == nil ? "authorization" : "authorizationToken"
        guard let authorization = try string(key) else { throw wrong("authorizationToken", "given") }
        return try BloomreachProject(
            token: token, apiKey: BloomreachProject.apiKey(inAuthorization: authorization),
            baseURL: string("baseUrl") ?? defaultBaseURL)
    }

    func flushPolicy() throws(CountersignError) -> FlushPolicy? {
        switch try string("flushMode") {
        case nil: return nil
        case "IMMEDIATE": return FlushPolicy(eventCount: 1, interval: nil, onBackground: true)
        case "MANUAL": return .manual
        case "AUTOMATIC": return FlushPolicy(eventCount: nil, interval: nil, onBackground: true)
        case "PERIOD":
            return FlushPolicy(
                eventCount: nil, interval: try number("flushPeriod") ?? 3_600, onBackground: true)
        default: throw wrong("flushMode", "IMMEDIATE, MANUAL, AUTOMATIC or PERIOD")
        }
    }
}

extension BloomreachProject {
    /// Reads a bare key, or the key after `Token `. Throws `invalidConfiguration` for schemes that are for servers
    /// only.
    package static func apiKey(inAuthorization text: String) throws(CountersignError) -> String {
        if text.hasPrefix("Basic ") || text.hasPrefix("Bearer ") {
            throw CountersignError(
                .invalidConfiguration,
                "authorization must be the public API key: an app must not hold private ones")
        }
        return text.hasPrefix("Token ") ? String(text.dropFirst("Token ".count)) : text
    }
}
