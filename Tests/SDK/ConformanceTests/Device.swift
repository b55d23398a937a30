import CountersignCore
import Foundation

@testable import CountersignDelivery
@testable import CountersignTransport

/// One client of the SDK in one run of an app. A scenario's steps act on it.
protocol Device: Sendable {
    var pipeline: DeliveryPipeline { get }

    /// Stores an event. Returns when the event is on disk.
    func record(_ name: String, bytes: Int) async throws

    /// Performs a step that exists only in this mode.
    func perform(_ verb: String, _ value: JSONValue, _ step: JSONObject) async throws

    /// Returns the observable state that exists only in this mode.
    func observe() async -> JSONObject

    func close() async
}

/// The dependencies of a device.
struct DeviceDependencies: Sendable {
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

/// The transport to the server. `cut()` simulates the end of the process.
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

/// Values passed to the app's callbacks.
final class Callbacks: Sendable {
    private let told = Lock([JSONValue]())

    func tell(_ value: JSONValue) { told.withLock { $0.append(value) } }

    /// Returns the values since the last call.
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
        Scenario.Failure("this client does not support the step \(verb)")
    }
}
