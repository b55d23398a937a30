import CountersignCore

@testable import CountersignBloomreach
@testable import CountersignDelivery

/// Runs scenarios of the mode `bloomreach` with a `BloomreachClient`.
struct BloomreachDevice: Device {
    private struct Provider: AsyncAuthorizationProvider {
        let provider: ScenarioProvider

        func authorizationToken() async throws -> String? { try await provider.token([:]) }
    }

    let client: BloomreachClient
    private let callbacks: Callbacks

    var pipeline: DeliveryPipeline { client.pipeline }

    init(_ dependencies: DeviceDependencies) throws {
        let given = dependencies.scenario.configuration
        var configuration = BloomreachConfiguration(project: try Self.project(given))
        configuration.dataDirectory = dependencies.directory
        configuration.log = nil
        configuration.automaticSessionTracking = false
        if given["flush"] == "manual" { configuration.flushPolicy = .manual }
        configuration.advancedAuthEnabled = dependencies.provider != nil
        configuration.authorizationProvider = dependencies.provider.map {
            .suspending(Provider(provider: $0))
        }
        callbacks = dependencies.callbacks
        client = try BloomreachClient(
            configuration: configuration, transport: dependencies.cable, clock: dependencies.clock)
        client.onDeliveryFailure { [callbacks] error in
            callbacks.tell([
                "code": .string(error.code.rawValue),
                "project": error.projectToken.map { .string($0) } ?? .null,
            ])
        }
    }

    private static func project(_ given: JSONObject) throws -> BloomreachProject {
        try BloomreachProject(
            token: given["project"]?.string ?? "shop", apiKey: given["key"]?.string ?? "key",
            baseURL: ScenarioServer.url)
    }

    func record(_ name: String, bytes: Int) async throws {
        client.trackEvent(name)
        await pipeline.recorder.drain()
    }

    func perform(_ verb: String, _ value: JSONValue, _ step: JSONObject) async throws {
        switch verb {
        case "identify": client.identifyCustomer(["registered": value.string ?? ""])
        case "anonymize": client.anonymize(project: try value.object.map(Self.project))
        case "ask":
            let result = await ask(value)
            if let difference = Matching.difference(step["result"] ?? "ok", .string(result), at: "result") {
                throw Scenario.Failure(difference)
            }
        default: throw Scenario.Failure.unknown(verb)
        }
    }

    private func ask(_ what: JSONValue) async -> String {
        do {
            switch what {
            case "app_inbox": _ = try await client.fetchAppInbox()
            case "consents": _ = try await client.fetchConsents()
            default: return "unknown"
            }
            return "ok"
        } catch {
            return error.code.rawValue
        }
    }

    func observe() async -> JSONObject {
        ["user": client.customerIDs["registered"].map { .string($0) } ?? .null]
    }

    func close() async { await client.close() }
}
