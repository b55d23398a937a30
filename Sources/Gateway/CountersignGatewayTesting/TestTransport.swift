package import CountersignGateway
internal import Foundation

/// The connection between a test and its gateway.
package enum TestTransport: String, CaseIterable, Sendable {
    /// Calls the gateway in this process, without a port. The gateway handles requests as it does from a connection.
    case router
    case live

    /// The transport for tests that do not choose one. `COUNTERSIGN_TEST_TRANSPORT=live` uses connections.
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

    /// A client of a gateway that was started with the same transport.
    package func client(of gateway: Gateway) throws -> any TestClient {
        switch self {
        case .router: RouterClient(service: gateway.service)
        case .live: try RawConnection(port: gateway.port)
        }
    }
}
