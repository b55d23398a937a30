import CountersignCore
import CountersignGatewayTesting
import Foundation
import Testing

@testable import CountersignGateway
@testable import GatewayHTTP
@testable import GatewayModel

/// Lists that are sent page by page.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct ListStreamTests {
    /// The lines of an answer that is such a list.
    private func lines(_ pages: [[UInt8]?]) throws -> [String] {
        let rest = Lock(pages[...])
        let server = try HTTPServer(
            limits: GatewayLimits(), trustedProxies: [], certificates: nil,
            observer: ObserverGroup(members: [])
        ) { _ in
            var response = HTTPResponse(status: 200, headers: [], body: [])
            response.stream =
                ListStream {
                    guard let page = rest.withLock({ $0.popFirst() }) else { return nil }
                    guard let page else { throw POSIXError(.EIO) }
                    return page
                }.body
            return .answer(response)
        }
        let port = try server.start(host: "127.0.0.1", port: 0)
        defer { server.stop(graceSeconds: 1) }
        let connection = try RawConnection(port: port)
        connection.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        var lines: [String] = []
        while let line = connection.line() { lines.append(line) }
        return lines
    }

    @Test func aWholeListEndsAsChunksDo() throws {
        let lines = try lines([Array("one\n".utf8), [], Array("two\n".utf8)])
        #expect(lines.contains("one") && lines.contains("two"))
        #expect(lines.suffix(2) == ["0", ""])
    }

    @Test func aListThatCannotBeReadToItsEndDoesNotLookWhole() throws {
        let lines = try lines([Array("one\n".utf8), nil, Array("two\n".utf8)])
        #expect(lines.contains("one") && !lines.contains("two"))
        #expect(!lines.contains("0"))
    }
}
