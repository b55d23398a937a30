public import CountersignCore
internal import Foundation

extension BloomreachConfiguration {
    /// Makes a configuration from a map with the keys of the vendor's Flutter SDK.
    ///
    /// `projectToken` and `authorizationToken` (the bare API key, or `Token` and the key) are required. Also read are
    /// `baseUrl`, `projectMapping`, `defaultProperties`, `allowDefaultCustomerProperties`, `advancedAuthEnabled`,
    /// `applicationId`, `flushMaxRetries` (accepted; no event is dropped for having failed often), and beyond those of the
    /// vendor: `ExponeaAuthProvider`, the provider's class as in the Android manifest; `flushMode` (`IMMEDIATE`, `MANUAL`,
    /// `AUTOMATIC`, `PERIOD` with `flushPeriod` in seconds), `platform`, `authorizationProviderTimeout` in seconds,
    /// `instanceName` and `dataDirectory`. Other keys are ignored, as are values that are null.
    ///
    /// What is wrong with a provider is logged in the words of the vendor's Android SDK.
    ///
    /// - Parameter map: The map.
    /// - Throws: `invalidConfiguration`, which names the key.
    public init(map: [String: JSONValue]) throws(CountersignError) {
        let reader = MapReader(members: map)
        let project = try reader.project(defaultBaseURL: nil)
        self.init(project: project)
        for (kind, value) in try reader.object("projectMapping") ?? [:] {
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
        advancedAuthEnabled = try reader.bool("advancedAuthEnabled") ?? false
        applicationID = try reader.string("applicationId")
        authorizationProvider = try reader.string("ExponeaAuthProvider").map { .className($0) }
        authorizationProviderTimeout =
            try reader.number("authorizationProviderTimeout") ?? authorizationProviderTimeout
        platform = try reader.string("platform") ?? platform
        instanceName = try reader.string("instanceName") ?? instanceName
        dataDirectory = try reader.string("dataDirectory").map { URL(fileURLWithPath: $0) }
        flushPolicy = try reader.flushPolicy() ?? flushPolicy
        wording = .android
    }
}

/// The members of a configuration map, each of the right type or an error that names it.
private struct MapReader {
    let members: [String: JSONValue]

    func wrong(_ key: String, _ expected: String) -> CountersignError {
        CountersignError(.invalidConfiguration, "\(key) must be \(expected)")
    }

    private func value<Value>(
        _ key: String, _ expected: String, _ read: (JSONValue) -> Value?
    ) throws(CountersignError) -> Value? {
        guard let value = members[key], value != .null else { return nil }
        guard let result = read(value) else { throw wrong(key, expected) }
        return result
    }

    func string(_ key: String) throws(CountersignError) -> String? { try value(key, "a text", \.string) }

    func bool(_ key: String) throws(CountersignError) -> Bool? { try value(key, "true or false", \.bool) }

    func number(_ key: String) throws(CountersignError) -> Double? { try value(key, "a number", \.numeric) }

    func object(_ key: String) throws(CountersignError) -> [String: JSONValue]? {
        try value(key, "an object", \.object)
    }

    func project(defaultBaseURL: String?) throws(CountersignError) -> BloomreachProject {
        guard let token = try string("projectToken") else { throw wrong("projectToken", "given") }
        guard let authorization = try string("authorizationToken") else {
            throw wrong("authorizationToken", "given")
        }
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
    /// The key in what an app calls authorization: bare, or behind `Token `.
    ///
    /// - Throws: `invalidConfiguration` for what is meant for servers only.
    package static func apiKey(inAuthorization text: String) throws(CountersignError) -> String {
        if text.hasPrefix("Basic ") || text.hasPrefix("Bearer ") {
            throw CountersignError(
                .invalidConfiguration,
                "authorization must be the public API key: an app must not hold private ones")
        }
        return text.hasPrefix("Token ") ? String(text.dropFirst("Token ".count)) : text
    }
}
