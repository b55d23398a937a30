import CountersignCore
import Foundation

@testable import CountersignDelivery
@testable import CountersignTransport

/// What a scenario's steps are done with: one client of the SDK, in one run of an app.
protocol Device: Sendable {
    var pipeline: DeliveryPipeline { get }

    /// Stores an event; when it returns, the event is on disk.
    func record(_ name: String, bytes: Int) async throws

    /// Does a step that only this mode has.
    func perform(_ verb: String, _ value: JSONValue, _ step: JSONObject) async throws

    /// What only this mode has to be looked at.
    func observe() async -> JSONObject

    func close() async
}

/// What a device is made in.
struct DeviceSurroundings: Sendable {
    let scenario: Scenario
    let directory: URL
    let clock: ScenarioClock
    let cable: Cable
    let provider: ScenarioProvider?
    let callbacks: Callbacks

    func makeDevice() throws -> any Device {
        switch scenario.mode {
        case .signedUser: try SignedUserDevice(self)
        case .accessToken: try AccessTokenDevice(self)
        case .bloomreach: try BloomreachDevice(self)
        }
    }
}

/// The way to the server, which ends with the process.
final class Cable: HTTPTransport {
    private let server: ScenarioServer
    private let isCut = Lock(false)

    init(_ server: ScenarioServer) {
        self.server = server
    }

    func cut() { isCut.withLock { $0 = true } }

    func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
        if isCut.withLock({ $0 }) { throw HTTPTransportError(.cancelled, "the process is gone") }
        return try await server.send(request)
    }
}

/// What the app was told.
final class Callbacks: Sendable {
    private let told = Lock([JSONValue]())

    func tell(_ value: JSONValue) { told.withLock { $0.append(value) } }

    /// Since this was asked last.
    func take() -> JSONValue {
        .array(
            told.withLock { told in
                defer { told = [] }
                return told
            })
    }
}

extension Scenario.Failure {
    static func unknown(_ verb: String) -> Scenario.Failure {
        Scenario.Failure("this client knows no step \(verb)")
    }
}
