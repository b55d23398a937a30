import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import TestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayHTTP
@testable import GatewayIngest
@testable import GatewayModel

/// A large request does not delay requests of other clients.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct LargeRequestsTests {
    /// Statuses of a small and a large request. The large request fails if the small one had to wait for it.
    private func answers(_ body: [UInt8], _ headers: [String: String]) throws -> [Int?] {
        let began = DispatchSemaphore(value: 0)
        let passed = DispatchSemaphore(value: 0)
        let reply = RequestRecorder()
        let server = HTTPServer(limits: GatewayLimits(), observer: reply) { request in
            guard request.path == "/large" else {
                passed.signal()
                return .answer(.text(200, ""))
            }
            began.signal()
            let isApart = passed.wait(timeout: .now() + 15) == .success
            request.context.route = request.header("x-a")
            return .answer(.text(isApart ? 200 : 500, ""))
        }
        let port = try server.start(host: "127.0.0.1", port: 0)
        defer { server.stop(graceSeconds: 1) }
        let large = try RawConnection(port: port)
        let small = try RawConnection(port: port)
        var head = "POST /large HTTP/1.1\r\nHost: a\r\nX-A: own copy\r\nContent-Length: \(body.count)\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        large.send(Array((head + "\r\n").utf8) + body)
        _ = began.wait(timeout: .now() + 15)
        let other = small.get("/small")?.status
        let answers = [other, large.answer()?.status]
        let records = [reply.next(), reply.next()]
        // The observer sees the context that the handler of the large request has set.
        #expect(records.contains { $0?.context.route == "own copy" })
        return answers
    }

    @Test func otherRequestsAreAnsweredWhileALargeBodyIsRead() throws {
        #expect(
            try answers([UInt8](repeating: 0x20, count: LargeRequests.smallBytes + 1), [:]) == [200, 200])
    }

    @Test func otherRequestsAreAnsweredWhileALargeCompressedBodyIsRead() throws {
        let random = (0..<1_000).map { _ in UInt8.random(in: 0...255) }
        // The compressed body is small, the decompressed body is large.
        let packed = try gzip(Array(repeatElement(random, count: 70).joined()))
        #expect(packed.count < LargeRequests.smallBytes)
        #expect(try answers(packed, ["Content-Encoding": "gzip"]) == [200, 200])
    }

    @Test func largeRequestsBeyondTheQueueLimitAreRejected() throws {
        let large = LargeRequests(capacity: 2)
        var starts: [(@escaping @Sendable () -> Void) -> Void] = []
        func rejection() -> HTTPResponse? {
            let request = HTTPRequest(method: "POST", path: "/", receivedMilliseconds: 1, body: [1])
            let held = MemoryReservation(BodyMemory(limit: 1))
            switch large.outcome(of: request, holding: held, { _ in .answer(.text(200, "")) }) {
            case .answer(let response): return response
            case .later(let start, _):
                starts.append(start)
                return nil
            }
        }
        #expect(rejection() == nil)
        #expect(rejection() == nil)
        let rejected = try #require(rejection())
        #expect(rejected.status == 503)
        #expect(rejected.headers.contains { $0 == ("Retry-After", "1") })
        // The second request ends only after the first has released its slot.
        let isDone = DispatchSemaphore(value: 0)
        for start in starts { start { isDone.signal() } }
        try isDone.waitForSignal()
        try isDone.waitForSignal()
        #expect(rejection() == nil)
    }

    @Test func aBodysMemoryIsReservedUntilItsHandlerEnds() throws {
        let large = LargeRequests()
        let memory = BodyMemory(limit: 1_000)
        let began = DispatchSemaphore(value: 0)
        let goesOn = DispatchSemaphore(value: 0)
        func begin(_ bytes: Int) {
            let request = HTTPRequest(
                method: "POST", path: "/", receivedMilliseconds: 1,
                body: [UInt8](repeating: 0x20, count: bytes))
            let held = MemoryReservation(memory)
            #expect(held.take(bytes))
            let outcome = large.outcome(of: request, holding: held) { request in
                began.signal()
                _ = goesOn.wait(timeout: .now() + 60)
                return .answer(.text(200, "\(request.body.count)"))
            }
            // Simulates a client that disconnects and never reads the response.
            if case .later(let start, _) = outcome { start {} }
        }
        begin(900)
        try began.waitForSignal()
        #expect(!MemoryReservation(memory).take(200))
        goesOn.signal()
        // Requests run one after another. When the third begins, the first has released its memory.
        begin(10)
        goesOn.signal()
        try began.waitForSignal()
        begin(10)
        goesOn.signal()
        try began.waitForSignal()
        #expect(MemoryReservation(memory).take(900))
    }

    @Test func otherRequestsAreAnsweredWhileABodyIsUnpacked() throws {
        let began = DispatchSemaphore(value: 0)
        let goesOn = DispatchSemaphore(value: 0)
        let reply = RequestRecorder()
        let server = HTTPServer(limits: GatewayLimits(), observer: reply) { request in
            if request.path == "/large" {
                began.signal()
                _ = goesOn.wait(timeout: .now() + 60)
            }
            request.context.route = request.path
            return .answer(.text(200, ""))
        }
        let port = try server.start(host: "127.0.0.1", port: 0)
        defer { server.stop(graceSeconds: 1) }
        let large = try RawConnection(port: port)
        let count = LargeRequests.smallBytes + 1
        large.send(
            Array("POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n".utf8)
                + [UInt8](repeating: 0x20, count: count))
        try began.waitForSignal()
        // The bomb is rejected while it is unpacked, so no handler sees it.
        let bomb = try RawConnection(port: port)
        let packed = try gzip([UInt8](repeating: 0x20, count: 3_000_000))
        bomb.send(
            Array(
                "POST /bomb HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: \(packed.count)\r\n\r\n"
                    .utf8) + packed)
        let small = try RawConnection(port: port)
        for _ in 0..<20 { #expect(small.get("/small")?.status == 200) }
        goesOn.signal()
        #expect(large.answer()?.status == 200)
        #expect(bomb.answer()?.status == 413)
        let statuses = (0..<22).map { _ in reply.next()?.status }
        // The bomb is last, because decompression waits for the large request. Small requests do not wait.
        #expect(statuses == Array(repeating: 200, count: 21) + [413])
    }

    @Test func aLargeRequestInProgressIsAnsweredDuringAStop() throws {
        let began = DispatchSemaphore(value: 0)
        let goesOn = DispatchSemaphore(value: 0)
        let server = HTTPServer(limits: GatewayLimits(), observer: RequestRecorder()) { request in
            began.signal()
            _ = goesOn.wait(timeout: .now() + 60)
            return .answer(.text(200, "\(request.body.count)"))
        }
        let connection = try RawConnection(port: try server.start(host: "127.0.0.1", port: 0))
        let count = LargeRequests.smallBytes + 1
        connection.send(
            Array("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n".utf8)
                + [UInt8](repeating: 0x20, count: count))
        try began.waitForSignal()
        let hasStopped = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            server.stop(graceSeconds: 0)
            hasStopped.signal()
        }
        goesOn.signal()
        #expect(connection.answer()?.status == 200)
        try hasStopped.waitForSignal()
    }

    /// The server reuses the memory of the header if the client disconnects.
    @Test func aDetachedRequestCopiesItsHeader() {
        var header = Array("x-amine".utf8)
        let detached = header.withUnsafeMutableBufferPointer { header in
            let field = HTTPField(
                nameBytes: UnsafeBufferPointer(rebasing: header[..<3]),
                valueBytes: UnsafeBufferPointer(rebasing: header[3...]))
            let request = HTTPRequest(
                method: "POST", path: "/", fields: HeaderBlock(borrowing: [field]), receivedMilliseconds: 1,
                body: [1, 2])
            let detached = request.detached()
            #expect(detached.id == request.id)
            header.update(repeating: 0)
            return detached
        }
        #expect(detached.header("x-a") == "mine")
        #expect(detached.body == [1, 2])
    }

    /// Swift compares and hashes a run of combining marks in quadratic time. Each text would take a minute.
    @Test(arguments: [
        ("/v1/batch", #"{"writeKey":"¤","batch":[]}"#),
        (
            "/v1/page",
            #"{"name":"¤","userId":"user-1","properties":{"¤":1},"context":{"app":{"version":"¤"}}}"#
        ),
        ("/api/v3/data", #"{"api_key":"¤","events":[]}"#),
        (
            "/api/v3/data",
            #"{"device_id":"¤","events":[{"name":"¤","data":{"n":"¤"}}],"attributes":[{"¤":1}]}"#
        ),
        (
            "/track/v2/projects/shop/customers",
            #"{"customer_ids":{"cookie":"A"},"properties":{"a":{"¤":{"¤":1}}},"timestamp":1}"#
        ),
        (
            "/track/v2/projects/shop/customers/events",
            #"{"customer_ids":{"cookie":"A"},"event_type":"x","properties":{"a":{"¤":1}},"timestamp":"¤"}"#
        ),
        (
            "/track/v2/projects/shop/customers/events",
            #"{"customer_ids":{"¤":"A"},"event_type":"x","timestamp":1}"#
        ),
        (
            "/data/v2/projects/shop/customers/attributes",
            #"{"customer_ids":{"cookie":"A"},"attributes":[{"type":"¤"},{"type":"id","id":"¤"},{"type":"property","property":"¤"}]}"#
        ),
        ("/webxp/projects/shop/appinbox/fetch", #"{"customer_ids":{"cookie":"A"},"sync_token":"¤"}"#),
        (
            "/webxp/projects/shop/appinbox/fetch",
            #"{"customer_ids":{"cookie":"A"},"sync_token":"¤.1.1.1.1.1"}"#
        ),
        ("/webxp/projects/shop/appinbox/markasread", #"{"customer_ids":{"cookie":"A"},"message_ids":["¤"]}"#),
        ("/v1/identify", #"{"userId":"user-1","traits":{"¤":"¤","a":{"¤":1}}}"#),
        ("/api/register", #"{"org":"¤","uuid":"1"}"#),
        ("/api/refresh_token", #"{"refresh_token":"¤"}"#), ("/api/refresh_token", #"{"refreshToken":"¤"}"#),
        ("/admin/api/session", #"{"¤":1,"name":"¤","password":"¤"}"#),
    ])
    func longTextsOfCombiningMarksAreNotComparedByUnicodeRules(path: String, body: String) throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        let connection = try RawConnection(port: fixture.gateway.port)
        // U+0301, U+0323, U+0327: marks that need canonical ordering.
        let marks = String(repeating: "\u{301}\u{323}\u{327}", count: 70_000)
        let answer = connection.post(
            body.replacingOccurrences(of: "¤", with: marks), path: path,
            headers: [
                path == "/api/register" || body.contains("writeKey") || body.contains("api_key")
                    ? "X-B" : "X-Write-Key": fixture.writeKey,
                "X-Braze-Api-Key": path == "/api/v3/data" && !body.contains("api_key")
                    ? fixture.writeKey : "",
                "Authorization": path.contains("projects") ? "Token " + fixture.writeKey : "",
                "Content-Type": "application/json",
            ].filter { !$0.value.isEmpty })
        #expect(answer != nil)
        #expect(connection.get("/livez")?.status == 200)
    }

    @Test(arguments: WireShape.all)
    func longTextsOfMarksInEventsAreNotComparedByUnicodeRules(shape: WireShape) throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        let connection = try RawConnection(port: fixture.gateway.port)
        let marks = String(repeating: "\u{301}\u{323}\u{327}", count: 70_000)
        for name in shape.dialect.names + [marks] {
            let body = shape.body(shape.event("m", [name: "\"\(marks)\""]))
            #expect(try shape.send(body, to: fixture, connection).status != 503)
        }
    }

    @Test func nonASCIIBytesOfAFieldAreReplaced() {
        let name = Array("x-a".utf8)
        let value = Array("ä\u{301}b".utf8)
        name.withUnsafeBufferPointer { name in
            value.withUnsafeBufferPointer { value in
                let field = HTTPField(nameBytes: name, valueBytes: value)
                #expect(field.value == "\u{1A}\u{1A}\u{1A}\u{1A}b")
            }
        }
    }

    @Test func findingDuplicateIDsNeedsFewComparisons() {
        struct Counted: Hashable {
            let number: Int
            let comparisons: Counter

            static func == (one: Counted, other: Counted) -> Bool {
                one.comparisons.count += 1
                return one.number == other.number
            }

            func hash(into hasher: inout Hasher) { hasher.combine(number) }
        }
        final class Counter { var count = 0 }
        let comparisons = Counter()
        var ids = Distinct<Counted>()
        for _ in 0..<2 {
            for number in 0..<4_000 { ids.insert(Counted(number: number, comparisons: comparisons)) }
        }
        #expect(ids.values.map(\.number) == Array(0..<4_000))
        // Hash collisions need some comparisons. Comparing all pairs would need 16 million.
        #expect(comparisons.count < 200_000)
    }

    @Test func idsAreDistinguishedByTheirBytes() {
        var ids = DistinctIDs()
        for id in ["\u{E9}", "e\u{301}", "\u{E9}"] { ids.insert(id) }
        #expect(ids.ids.map { Array($0.utf8) } == [[0xC3, 0xA9], [0x65, 0xCC, 0x81]])
    }
}
