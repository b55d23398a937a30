import CountersignTesting
import CountersignTransport
import Foundation
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

/// A client over the platform's own transport on real sockets.
@Suite(.timeLimit(.minutes(5)))
struct RealServerTests {
    /// An event that was delivered is not sent again after a response that is too long.
    @Test func eventsAreDeliveredThoughTheResponseExceedsTheLimit() async throws {
        let server = try RawServer { _ in
            let body =
                #"{"success":true,"accepted":1,"duplicates":0,"rejected":[],"x":""#
                + String(repeating: "x", count: 2_000_000) + "\"}"
            return "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        }
        defer { server.stop() }
        var bench = try Bench()
        bench.configuration.endpoint = try #require(URL(string: "http://127.0.0.1:\(server.port)"))
        let client = try CountersignClient(configuration: bench.configuration)
        client.track("one")
        #expect(await client.flush().isComplete)
        await client.close()
    }

    /// A hanging server must not keep an app from closing the client.
    @Test func closeEndsARequestThatHangs() async throws {
        let arrived = Handshake()
        let server = try RawServer { _ in
            arrived.signal()
            return ""
        }
        defer { server.stop() }
        var bench = try Bench()
        bench.configuration.endpoint = try #require(URL(string: "http://127.0.0.1:\(server.port)"))
        bench.configuration.requestTimeout = 600
        let client = try CountersignClient(configuration: bench.configuration)
        client.track("one")
        async let result = client.flush()
        await arrived.wait()
        await client.close()
        #expect(await result.delivered == 0)
        #expect(try bench.openQueue().value(of: .rows) == 1)
    }
}
