internal import Countersign
internal import CountersignCore
internal import CountersignDelivery
internal import Foundation

/// Events with their user's signed token.
struct SignedUserMode: Mode {
    private let client: CountersignClient

    init(settings given: Arguments, callbacks: Callbacks) throws(CountersignError) {
        let settings = given.configuration
        var configuration = try Self.configuration(settings)
        configuration.log = try settings.log(callbacks)
        if callbacks.provider != nil {
            configuration.tokenProvider = { [timeout = configuration.tokenProviderTimeout] request in
                var members: JSONObject = [
                    "userId": .string(request.userID), "reason": .string(request.reason.rawValue),
                ]
                if let code = request.code { members["code"] = .integer(Int64(code.rawValue)) }
                return try await callbacks.token(.object(members), within: timeout)
            }
        }
        client = try CountersignClient(configuration: configuration)
        client.onAuthenticationFailure { failure in callbacks.send(Self.json(failure)) }
    }

    private static func configuration(_ given: Arguments) throws(CountersignError) -> CountersignConfiguration
    {
        try given.allow([
            "endpoint", "writeKey", "instanceName", "dataDirectory", "logLevel", "requestTimeout",
            "tokenProviderTimeout", "sessionTimeout", "batchEvents", "batchBytes", "flushPolicy", "limits",
            "networkRetry", "authenticationRetry", "context", "headers", "storesTokens",
        ])
        guard let endpoint = URL(string: try given.required("endpoint")) else {
            throw given.wrong("endpoint", "a URL")
        }
        var configuration = CountersignConfiguration(
            endpoint: endpoint, writeKey: try given.required("writeKey"))
        configuration.instanceName = try given.string("instanceName") ?? configuration.instanceName
        configuration.dataDirectory = try given.folder()
        if try given.bool("storesTokens") == false { configuration.tokenStore = MemoryTokenStore() }
        configuration.headers = try given.texts("headers") ?? [:]
        configuration.context = try given.context()
        configuration.requestTimeout = try given.number("requestTimeout") ?? configuration.requestTimeout
        configuration.tokenProviderTimeout =
            try given.number("tokenProviderTimeout") ?? configuration.tokenProviderTimeout
        configuration.sessionTimeout = try given.number("sessionTimeout") ?? configuration.sessionTimeout
        configuration.batchEvents = try given.integer("batchEvents") ?? configuration.batchEvents
        configuration.batchBytes = try given.integer("batchBytes") ?? configuration.batchBytes
        try take(given, &configuration.flushPolicy)
        try take(given.group("limits"), &configuration.limits)
        try given.retry("networkRetry", &configuration.networkRetry)
        try given.retry("authenticationRetry", &configuration.authenticationRetry)
        return configuration
    }

    private static func take(_ given: Arguments, _ policy: inout FlushPolicy) throws(CountersignError) {
        switch given.members["flushPolicy"] {
        case nil, "automatic": break
        case "manual": policy = .manual
        case .object:
            let group = try given.group("flushPolicy")
            try group.allow(["eventCount", "interval", "onBackground"])
            policy = FlushPolicy(
                eventCount: try group.integer("eventCount"), interval: try group.number("interval"),
                onBackground: try group.bool("onBackground") ?? true)
        default: throw given.wrong("flushPolicy", "automatic, manual or an object")
        }
    }

    private static func take(_ given: Arguments, _ limits: inout QueueLimits) throws(CountersignError) {
        try given.allow([
            "maximumEvents", "maximumBytes", "maximumAge", "maximumEventBytes", "maximumQuarantinedEvents",
            "maximumUnsavedEvents", "maximumUnsavedBytes",
        ])
        limits.maximumEvents = try given.integer("maximumEvents") ?? limits.maximumEvents
        limits.maximumBytes = try given.integer("maximumBytes") ?? limits.maximumBytes
        limits.maximumAge = try given.number("maximumAge") ?? limits.maximumAge
        limits.maximumEventBytes = try given.integer("maximumEventBytes") ?? limits.maximumEventBytes
        limits.maximumQuarantinedEvents =
            try given.integer("maximumQuarantinedEvents") ?? limits.maximumQuarantinedEvents
        limits.maximumUnsavedEvents = try given.integer("maximumUnsavedEvents") ?? limits.maximumUnsavedEvents
        limits.maximumUnsavedBytes = try given.integer("maximumUnsavedBytes") ?? limits.maximumUnsavedBytes
    }

    private static func json(_ failure: AuthenticationFailure) -> JSONValue {
        [
            "event": "authentication_failure", "code": .integer(Int64(failure.code.rawValue)),
            "reason": .string(failure.reason), "userId": JSONValue(failure.userID),
            "token": JSONValue(failure.token?.rawValue), "optional": .bool(failure.isOptional),
            "origin": .string(failure.origin.rawValue), "occurrences": JSONValue(failure.occurrences),
            "clockSkew": JSONValue(failure.clockSkew),
            "requestTime": .number(failure.requestTime.timeIntervalSince1970),
        ]
    }

    // MARK: Calls

    func begin(
        _ method: String, _ arguments: Arguments, _ completion: @escaping Completion
    ) throws(CountersignError) -> Bool {
        switch method {
        case "identify":
            client.identify(
                userID: try arguments.required("userId"), token: try arguments.string("token"),
                traits: try arguments.object("traits") ?? [:]
            ) { result in completion(result.map { JSONValue($0) }) }
            return true
        case "track":
            let kind = EventKind(rawValue: try arguments.string("kind") ?? EventKind.track.rawValue)
            guard kind != .identify, EventKind.all.contains(kind) else {
                throw arguments.wrong("kind", "track, page, screen, group or alias")
            }
            client.record(
                try arguments.required("event"), kind: kind,
                properties: try arguments.object("properties") ?? [:]
            ) { result in completion(result.map { .string($0) }) }
            return true
        case "changeUser":
            client.setUser(try arguments.required("userId"), token: try arguments.string("token"))
        case "logOut":
            client.logOut { completion(.success($0.json)) }
            return true
        case "setToken": client.setToken(try arguments.required("token"))
        case "startSession": client.startSession()
        case "endSession": client.endSession()
        case "enterBackground": client.enterBackground()
        case "enterForeground": client.enterForeground()
        case "userId":
            completion(.success(JSONValue(client.userID)))
            return true
        default: return false
        }
        completion(.success(.null))
        return true
    }

    func perform(_ method: String, _ arguments: Arguments) async throws(CountersignError) -> JSONValue? {
        switch method {
        case "flush": return await client.flush().json
        case "snapshot": return await client.snapshot().json
        case "quarantinedEvents": return .array(try await client.quarantinedEvents().map(\.json))
        case "requeueQuarantinedEvents": return JSONValue(try await client.requeueQuarantinedEvents())
        case "deleteQuarantinedEvents": return JSONValue(try await client.deleteQuarantinedEvents())
        case "wipe": try await client.wipeData()
        case "optOut": try await client.optOut()
        case "optIn": try await client.optIn()
        default: return nil
        }
        return .null
    }

    func close() async { await client.close() }
}

/// Tokens in memory only, for a caller that stores them itself.
private final class MemoryTokenStore: TokenStore {
    private let tokens = Lock<BytewiseDictionary<String>>([:])

    func token(for userID: String) throws -> String? { tokens.withLock { $0[userID] } }

    func store(_ token: String, for userID: String) throws { tokens.withLock { $0[userID] = token } }

    func removeToken(for userID: String) throws { tokens.withLock { $0[userID] = nil } }

    func removeAll() throws { tokens.withLock { $0 = [:] } }
}
