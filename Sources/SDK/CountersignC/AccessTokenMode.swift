internal import CountersignCore
internal import CountersignDelivery
internal import CountersignLocations

/// Locations with a self-refreshing access token.
struct AccessTokenMode: Mode {
    private let client: LocationClient

    init(settings given: Arguments, callbacks: Callbacks) throws(CountersignError) {
        let settings = given.configuration
        try settings.allow([
            "http", "authorization", "persistence", "keepsTokens", "instanceName", "dataDirectory",
            "logLevel", "networkRetry", "context",
        ])
        var configuration = LocationConfiguration()
        try Self.take(settings, &configuration)
        configuration.instanceName = try settings.string("instanceName") ?? configuration.instanceName
        configuration.dataDirectory = try settings.folder()
        configuration.context = try settings.context()
        try settings.retry("networkRetry", &configuration.networkRetry)
        configuration.log = try settings.log(callbacks)
        configuration.onAuthorization = { event in
            callbacks.send([
                "event": "authorization", "success": .bool(event.isSuccess),
                "status": JSONValue(event.status), "response": .object(event.response),
                "error": JSONValue(event.error),
            ])
        }
        configuration.onHTTP = { event in
            callbacks.send([
                "event": "upload", "success": .bool(event.isSuccess), "status": JSONValue(event.status),
                "error": JSONValue(event.error),
            ])
        }
        client = try LocationClient(
            configuration: configuration, keepsTokens: try settings.bool("keepsTokens") ?? false)
    }

    /// Applies the settings that may change while the client runs.
    private static func take(
        _ given: Arguments, _ configuration: inout LocationConfiguration
    ) throws(CountersignError) {
        try take(given.group("http"), &configuration.http)
        try take(given.group("authorization"), &configuration.authorization)
        try take(given.group("persistence"), &configuration.persistence)
    }

    private static func take(
        _ given: Arguments, _ http: inout LocationConfiguration.HTTP
    ) throws(CountersignError) {
        try given.allow([
            "url", "method", "headers", "params", "rootProperty", "timeout", "autoSync", "autoSyncThreshold",
            "batchSync", "maxBatchSize", "acceptsPages", "gzip",
        ])
        http.url = try given.string("url") ?? http.url
        http.method = try given.string("method") ?? http.method
        http.headers = try given.texts("headers") ?? http.headers
        http.params = try given.object("params") ?? http.params
        http.rootProperty = try given.string("rootProperty") ?? http.rootProperty
        http.timeout = try given.number("timeout") ?? http.timeout
        http.autoSync = try given.bool("autoSync") ?? http.autoSync
        http.autoSyncThreshold = try given.integer("autoSyncThreshold") ?? http.autoSyncThreshold
        http.batchSync = try given.bool("batchSync") ?? http.batchSync
        http.maxBatchSize = try given.integer("maxBatchSize") ?? http.maxBatchSize
        http.gzip = try given.bool("gzip") ?? http.gzip
        http.acceptsPages = try given.bool("acceptsPages") ?? http.acceptsPages
    }

    private static func take(
        _ given: Arguments, _ authorization: inout AuthorizationConfiguration
    ) throws(CountersignError) {
        try given.allow([
            "strategy", "accessToken", "expires", "refreshUrl", "refreshToken", "refreshPayload",
            "refreshHeaders", "refreshStatuses", "expiresUnit", "responseMapping",
        ])
        if let strategy = try given.string("strategy") { authorization.strategy = .init(rawValue: strategy) }
        authorization.accessToken = try given.string("accessToken") ?? authorization.accessToken
        authorization.expires = try given.number("expires") ?? authorization.expires
        authorization.refreshUrl = try given.string("refreshUrl") ?? authorization.refreshUrl
        authorization.refreshToken = try given.string("refreshToken") ?? authorization.refreshToken
        authorization.refreshPayload = try given.object("refreshPayload") ?? authorization.refreshPayload
        authorization.refreshHeaders = try given.texts("refreshHeaders") ?? authorization.refreshHeaders
        if let statuses = try given.array("refreshStatuses") {
            let numbers = statuses.compactMap { $0.double.flatMap { Int(exactly: $0) } }
            guard numbers.count == statuses.count else {
                throw given.wrong("refreshStatuses", "a list of whole numbers")
            }
            authorization.refreshStatuses = Set(numbers)
        }
        if let unit = try given.string("expiresUnit") { authorization.expiresUnit = .init(rawValue: unit) }
        authorization.responseMapping = try given.texts("responseMapping") ?? authorization.responseMapping
    }

    private static func take(
        _ given: Arguments, _ persistence: inout LocationConfiguration.Persistence
    ) throws(CountersignError) {
        try given.allow([
            "locationsOrderDirection", "maxDaysToPersist", "maxRecordsToPersist", "extras",
            "locationTemplate", "timestampFormat",
        ])
        if let direction = try given.string("locationsOrderDirection") {
            persistence.locationsOrderDirection = .init(rawValue: direction)
        }
        persistence.maxDaysToPersist = try given.integer("maxDaysToPersist") ?? persistence.maxDaysToPersist
        persistence.maxRecordsToPersist =
            try given.integer("maxRecordsToPersist") ?? persistence.maxRecordsToPersist
        persistence.extras = try given.object("extras") ?? persistence.extras
        persistence.locationTemplate =
            try given.string("locationTemplate") ?? persistence.locationTemplate
        if let format = try given.string("timestampFormat") {
            persistence.timestampFormat = .init(rawValue: format)
        }
    }

    // MARK: Calls

    func begin(
        _ method: String, _ arguments: Arguments, _ completion: @escaping Completion
    ) throws(CountersignError) -> Bool {
        guard method == "insert" else { return false }
        try client.insert(arguments.members) { result in completion(result.map { .string($0) }) }
        return true
    }

    func perform(_ method: String, _ arguments: Arguments) async throws(CountersignError) -> JSONValue? {
        switch method {
        case "configure":
            let settings = arguments.configuration
            try settings.allow(["http", "authorization", "persistence"])
            var changed = client.configuration
            try Self.take(settings, &changed)
            let configuration = changed
            try await client.update { $0 = configuration }
        case "sync": return .array(try await client.sync())
        case "count": return JSONValue(try await client.count())
        case "records": return .array(try await client.records())
        case "remove": return .bool(try await client.remove(uuid: try arguments.required("uuid")))
        case "removeAll": try await client.removeAll()
        case "authorizationState":
            let state = await client.authorizationState
            return [
                "kind": .string(state.kind.rawValue), "reason": JSONValue(state.reason),
                "retryIn": JSONValue(state.retryIn),
            ]
        case "accessToken":
            return .string(try await client.accessToken(replacing: try arguments.string("replacing")))
        case "forgetTokens": await client.forgetTokens()
        case "snapshot": return await client.snapshot().json
        case "quarantinedEvents": return .array(try await client.quarantinedRecords().map(\.json))
        case "requeueQuarantinedEvents": return JSONValue(try await client.requeueQuarantinedRecords())
        case "deleteQuarantinedEvents": return JSONValue(try await client.deleteQuarantinedRecords())
        default: return nil
        }
        return .null
    }

    func close() async { await client.close() }
}
