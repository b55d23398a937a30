import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayHTTP
@testable import GatewayModel

/// Lists that are sent in pages.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct ListStreamTests {
    /// Starts a server that answers each path with a list.
    private func server(
        _ page: @escaping @Sendable (_ path: String) throws -> [UInt8]?
    ) throws -> (HTTPServer, port: UInt16) {
        let server = HTTPServer(
            limits: GatewayLimits(), trustedProxies: [], certificates: nil,
            observer: ObserverGroup(members: [])
        ) { request in
            var response = HTTPResponse(status: 200, headers: [], body: [])
            let path = request.path
            response.stream = ListStream { try page(path) }.body
            return .answer(response)
        }
        return (server, try server.start(host: "127.0.0.1", port: 0))
    }

    private func ask(_ path: String, _ port: UInt16) throws -> RawConnection {
        let connection = try RawConnection(port: port)
        connection.send("GET \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return connection
    }

    private func lines(_ connection: RawConnection) -> [String] {
        var lines: [String] = []
        while let line = connection.line() { lines.append(line) }
        return lines
    }

    /// Returns the response lines of a list with these pages. A nil page fails.
    private func lines(_ pages: [[UInt8]?]) throws -> [String] {
        let rest = Lock(pages[...])
        let (server, port) = try server { _ in
            guard let page = rest.withLock({ $0.popFirst() }) else { return nil }
            guard let page else { throw POSIXError(.EIO) }
            return page
        }
        defer { server.stop(graceSeconds: 1) }
        return lines(try ask("/", port))
    }

    #if os(Linux)
        /// Exports run at a lower priority than ingestion.
        @Test func aStreamedListIsReadAtLowPriority() throws {
            let priority = Lock<Int32?>(nil)
            let (server, port) = try server { _ in
                priority.withLock { $0 = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) }
                return nil
            }
            defer { server.stop(graceSeconds: 1) }
            _ = lines(try ask("/", port))
            #expect(priority.withLock { $0 } == 10)
        }
    #endif

    /// The last page of an export waits for transactions of the database.
    @Test func aWaitingListDoesNotBlockAnotherList() throws {
        let (waits, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let (isRead, hasWaited) = (Lock(false), Lock<DispatchTimeoutResult?>(nil))
        let (server, port) = try server { path in
            if path == "/waits" {
                waits.signal()
                // Waits for the other list. With a time-out the test fails instead of hanging.
                hasWaited.withLock { $0 = goesOn.wait(timeout: .now() + 20) }
                return nil
            }
            return isRead.withLock { isRead in
                defer { isRead = true }
                return isRead ? nil : Array("one\n".utf8)
            }
        }
        defer { server.stop(graceSeconds: 1) }
        let waiting = try ask("/waits", port)
        waits.wait()
        #expect(lines(try ask("/other", port)).contains("one"))
        goesOn.signal()
        #expect(lines(waiting).last == "")
        #expect(hasWaited.withLock { $0 } == .success, "the other list ended while this one waited")
    }

    @Test func aCompleteListEndsWithTheFinalChunk() throws {
        let lines = try lines([Array("one\n".utf8), [], Array("two\n".utf8)])
        #expect(lines.contains("one") && lines.contains("two"))
        #expect(lines.suffix(2) == ["0", ""])
    }

    @Test func aListThatFailsHasNoFinalChunk() throws {
        let lines = try lines([Array("one\n".utf8), nil, Array("two\n".utf8)])
        #expect(lines.contains("one") && !lines.contains("two"))
        #expect(!lines.contains("0"))
    }
}
