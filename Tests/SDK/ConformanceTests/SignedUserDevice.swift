import CountersignCore
import Foundation

@testable import Countersign
@testable import CountersignDelivery

/// Runs scenarios of the mode `signed_user` with a `CountersignClient`.
struct SignedUserDevice: Device {
    let client: CountersignClient

    var pipeline: DeliveryPipeline { client.pipeline }

    init(_ dependencies: DeviceDependencies) throws {
        guard let endpoint = URL(string: ScenarioServer.url) else {
            throw Scenario.Failure("no server")
        }
        let given = dependencies.scenario.configuration
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: "wk")
        configuration.dataDirectory = dependencies.directory
        configuration.log = nil
        if given["flush"] == "manual" { configuration.flushPolicy = .manual }
        if let count = given["batch_events"]?.double { configuration.batchEvents = Int(count) }
        if let count = given["maximum_events"]?.double { configuration.limits.maximumEvents = Int(count) }
        if let provider = dependencies.provider {
            configuration.tokenProvider = { request in
                try await provider.token([
                    "user": .string(request.userID), "reason": .string(request.reason.rawValue),
                    "code": request.code.map { .integer(Int64($0.rawValue)) } ?? .null,
                ])
            }
        }
        let dialect = NativeDialect(endpoint: endpoint, writeKey: "wk", timeout: 30)
        client = try CountersignClient(
            configuration: configuration, dialect: dialect, transport: dependencies.cable,
            clock: dependencies.clock, random: { 1 })
        client.onAuthenticationFailure { [callbacks = dependencies.callbacks] failure in
            callbacks.tell([
                "code": .integer(Int64(failure.code.rawValue)), "reason": .string(failure.reason),
                "user": failure.userID.map { .string($0) } ?? .null,
                "token": failure.token.map { .string($0.rawValue) } ?? .null,
                "is_optional": .bool(failure.isOptional), "origin": .string(failure.origin.rawValue),
                "clock_skew": failure.clockSkew.map { .number($0) } ?? .null,
                "occurrences": .integer(Int64(failure.occurrences)),
            ])
        }
    }

    func record(_ name: String, bytes: Int) async throws {
        let filler = JSONValue.string(String(repeating: "x", count: bytes))
        try await client.record(name, properties: bytes > 0 ? ["filler": filler] : [:])
    }

    func perform(_ verb: String, _ value: JSONValue, _ step: JSONObject) async throws {
        switch verb {
        case "change_user":
            client.setUser(value.string ?? "", token: step["token"]?.string.map(Scenario.token))
        case "set_token": client.setToken(Scenario.token(value.string ?? ""))
        case "log_out": await client.logOut()
        case "wipe": try await client.wipeData()
        case "opt_out": try await client.optOut()
        case "opt_in": try await client.optIn()
        default: throw Scenario.Failure.unknown(verb)
        }
    }

    func observe() async -> JSONObject {
        ["user": client.userID.map { .string($0) } ?? .null]
    }

    func close() async { await client.close() }
}
