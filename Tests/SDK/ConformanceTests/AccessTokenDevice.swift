import CountersignCore

@testable import CountersignDelivery
@testable import CountersignLocations

/// Runs scenarios of the mode `access_token` with a `LocationClient`.
struct AccessTokenDevice: Device {
    let client: LocationClient

    var pipeline: DeliveryPipeline { client.pipeline }

    init(_ dependencies: DeviceDependencies) throws {
        let given = dependencies.scenario.configuration
        var configuration = LocationConfiguration()
        configuration.dataDirectory = dependencies.directory
        configuration.log = nil
        configuration.http.url = ScenarioServer.url
        configuration.http.autoSync = given["flush"] != "manual"
        configuration.http.batchSync = given["batch_events"] != nil
        if let count = given["batch_events"]?.double { configuration.http.maxBatchSize = Int(count) }
        if let order = given["order"]?.string {
            configuration.persistence.locationsOrderDirection = .init(rawValue: order)
        }
        if let count = given["maximum_events"]?.double {
            configuration.persistence.maxRecordsToPersist = Int(count)
        }
        configuration.authorization.refreshUrl =
            given["refresh_url"] == .null ? nil : ScenarioServer.tokenURL
        configuration.authorization.refreshPayload = ["refresh_token": "{refreshToken}"]
        configuration.authorization.refreshStatuses = Set(
            (given["refresh_statuses"]?.array ?? []).compactMap { $0.double.map { Int($0) } })
        Self.take(given, into: &configuration.authorization)
        configuration.onAuthorization = { [callbacks = dependencies.callbacks] event in
            callbacks.tell([
                "is_success": .bool(event.isSuccess), "status": .integer(Int64(event.status)),
            ])
        }
        client = try LocationClient(
            configuration: configuration, keepsTokens: given["keeps_tokens"] == .bool(true),
            transport: dependencies.cable, clock: dependencies.clock, random: { 1 })
    }

    private static func take(
        _ given: JSONObject, into authorization: inout AuthorizationConfiguration
    ) {
        if let token = given["access_token"] { authorization.accessToken = token.string }
        if let token = given["refresh_token"] { authorization.refreshToken = token.string }
        if let seconds = given["expires"]?.double { authorization.expires = seconds }
    }

    func record(_ name: String, bytes: Int) async throws {
        try await client.insert(["uuid": .string(name), "coords": ["latitude": 1, "longitude": 2]])
    }

    func perform(_ verb: String, _ value: JSONValue, _ step: JSONObject) async throws {
        switch verb {
        case "hand_over":
            try await client.update { Self.take(value.object ?? [:], into: &$0.authorization) }
        case "forget_tokens": await client.forgetTokens()
        case "wipe": try await client.removeAll()
        default: throw Scenario.Failure.unknown(verb)
        }
    }

    func observe() async -> JSONObject {
        await client.callbacksDelivered()
        let state = await client.authorizationState
        return [
            "authorization": .string(state.kind.rawValue),
            "refresh_in": state.retryIn.map { .number($0) } ?? .null,
        ]
    }

    func close() async { await client.close() }
}
