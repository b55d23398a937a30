package import CountersignGateway
internal import Foundation

/// How a test reaches its gateway.
package enum TestTransport: String, CaseIterable, Sendable {
    /// By a call in the same process: the gateway has no port. Everything past the connection is the same.
    case router
    /// Over connections to a port of this machine.
    case live

    /// What tests take that are about neither. `COUNTERSIGN_TEST_TRANSPORT=live` runs them over connections.
    package static let standard =
        ProcessInfo.processInfo.environment["COUNTERSIGN_TEST_TRANSPORT"].flatMap {
            TestTransport(rawValue: $0)
        }
        ?? .router

    package func start(_ gateway: Gateway) throws {
        switch self {
        case .router: try gateway.startInProcess()
        case .live: try gateway.start()
        }
    }

    /// One who sends to a gateway that was started by the same transport.
    package func client(of gateway: Gateway) throws -> any TestClient {
        switch self {
        case .router: RouterClient(service: gateway.service)
        case .live: try RawConnection(port: gateway.port)
        }
    }
}
