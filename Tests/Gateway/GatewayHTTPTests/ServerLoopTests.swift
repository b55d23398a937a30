import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import TestSupport
import Testing

@testable import GatewayHTTP
@testable import GatewayModel

/// Several loops on one port share their limits and stop together.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct ServerLoopTests {
    /// A server with two loops that replies when the test opens the gate.
    private final class Gated: Sendable {
        /// So many connections that one loop practically never gets all of them.
        static let connections = 24

        let server: HTTPServer
        private let gate: Gate
        private let threads: Lock<Set<ObjectIdentifier>>
        private let begun: DispatchSemaphore

        /// Holds requests, present and future, until the test opens it.
        private final class Gate: Sendable {
            private let state = Lock<(isOpen: Bool, waiting: [@Sendable () -> Void])>((false, []))

            var isOpen: Bool { state.withLock { $0.isOpen } }

            func wait(_ resume: @escaping @Sendable () -> Void) {
                let isOpen = state.withLock { state in
                    if !state.isOpen { state.waiting.append(resume) }
                    return state.isOpen
                }
                if isOpen { resume() }
            }

            func open() {
                let waiting = state.withLock { state in
                    defer { state = (true, []) }
                    return state.waiting
                }
                for resume in waiting { resume() }
            }
        }

        init(_ limits: GatewayLimits) throws {
            let threads = Lock<Set<ObjectIdentifier>>([])
            let begun = DispatchSemaphore(value: 0)
            let gate = Gate()
            (self.threads, self.begun, self.gate) = (threads, begun, gate)
            server = HTTPServer(limits: limits, observer: RequestRecorder(), loopCount: 2) { _ in
                threads.withLock { _ = $0.insert(ObjectIdentifier(Thread.current)) }
                return .later(
                    start: { resume in
                        gate.wait(resume)
                        begun.signal()
                    },
                    poll: { gate.isOpen ? .text(200, "") : nil })
            }
        }

        /// Sends a request and returns its connection once the request has begun.
        func begin(_ port: UInt16) throws -> RawConnection {
            let connection = try request(port)
            try begun.waitForSignal()
            return connection
        }

        func request(_ port: UInt16) throws -> RawConnection {
            let connection = try RawConnection(port: port)
            connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            return connection
        }

        func openGate() { gate.open() }

        var threadCount: Int { threads.withLock { $0.count } }
    }

    @Test(arguments: [false, true])
    func allServerLoopsShareTheConnectionLimit(ofAddress: Bool) throws {
        var limits = GatewayLimits()
        if ofAddress {
            limits.connectionsPerAddress = Gated.connections
        } else {
            limits.connections = Gated.connections
        }
        let gated = try Gated(limits)
        let port = try gated.server.start(host: "127.0.0.1", port: 0)
        defer { gated.server.stop(graceSeconds: 1) }
        let connections = try (0..<Gated.connections).map { _ in try gated.begin(port) }
        #expect(gated.threadCount == 2)
        // In either loop, the connection limit is reached.
        for _ in 0..<8 { #expect(try gated.request(port).isClosedByServer()) }
        gated.openGate()
        for connection in connections { #expect(connection.answer()?.status == 200) }
    }

    /// Otherwise each of the 100 responses would wait for the loop's timeout of a second,
    /// and the waiting request would time out first.
    @Test func aWaitingRequestDelaysNoOther() throws {
        let begun = DispatchSemaphore(value: 0)
        let end = Lock<[@Sendable () -> Void]>([])
        let server = HTTPServer(limits: GatewayLimits(), observer: RequestRecorder(), loopCount: 1) {
            request in
            .later(
                start: { resume in
                    guard request.path == "/wait" else { return Thread.detachNewThread { resume() } }
                    end.withLock { $0 = [resume] }
                    begun.signal()
                }, poll: { .text(200, "an answer with a body") })
        }
        let port = try server.start(host: "127.0.0.1", port: 0)
        defer { server.stop(graceSeconds: 0) }
        let waiting = try RawConnection(port: port)
        waiting.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        try begun.waitForSignal()
        let connection = try RawConnection(port: port)
        for _ in 0..<100 { #expect(connection.send("POST", "/", [:], Array("{}".utf8))?.status == 200) }
        for resume in end.withLock({ $0 }) { resume() }
        #expect(waiting.answer()?.status == 200)
    }

    @Test func aStreamThatAlwaysHasDataDelaysNoOther() throws {
        let (pieces, atAnswer) = (Lock(0), Lock(0))
        let (begun, isSent) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let server = HTTPServer(limits: GatewayLimits(), observer: RequestRecorder(), loopCount: 1) {
            request in
            var response = HTTPResponse.text(200, "")
            if request.path == "/stream" {
                response.stream = ResponseStream(
                    pull: {
                        let count = pieces.withLock { count in
                            count += 1
                            return count
                        }
                        if count == 1 { begun.signal() }
                        if count == 100 { isSent.wait() }
                        return .bytes([0x61])
                    }, page: { nil })
            } else {
                atAnswer.withLock { $0 = pieces.withLock { $0 } }
            }
            return .answer(response)
        }
        let port = try server.start(host: "127.0.0.1", port: 0)
        defer { server.stop(graceSeconds: 0) }
        let other = try RawConnection(port: port)
        #expect(other.send("GET", "/", [:], nil)?.status == 200)
        let stream = try RawConnection(port: port)
        stream.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        try begun.waitForSignal()
        other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        isSent.signal()
        #expect(other.answer()?.status == 200)
        #expect(atAnswer.withLock { $0 } < 1_000)
    }

    @Test func stoppingAnswersBegunRequestsOfAllLoops() throws {
        var limits = GatewayLimits()
        limits.headerSeconds = 600
        let gated = try Gated(limits)
        let port = try gated.server.start(host: "127.0.0.1", port: 0)
        let connections = try (0..<Gated.connections).map { _ in try gated.begin(port) }
        #expect(gated.threadCount == 2)
        let idle = try (0..<Gated.connections).map { _ in try RawConnection(port: port) }
        let isStopped = Lock(false)
        let stopped = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            gated.server.stop(graceSeconds: 60)
            isStopped.withLock { $0 = true }
            stopped.signal()
        }
        // A loop closes its listener before its idle connections. The server must not have stopped yet.
        for connection in idle { #expect(connection.isClosedByServer()) }
        #expect(throws: (any Error).self) { try RawConnection(port: port) }
        #expect(!isStopped.withLock { $0 })
        gated.openGate()
        for connection in connections { #expect(connection.answer()?.status == 200) }
        try stopped.waitForSignal()
        #expect(gated.server.connectionCount == 0)
    }

    @Test func aPortInUseByAnotherServerIsAnError() throws {
        let gated = try Gated(GatewayLimits())
        let port = try gated.server.start(host: "127.0.0.1", port: 0)
        defer { gated.server.stop(graceSeconds: 1) }
        let other = try Gated(GatewayLimits())
        #expect(throws: GatewayError.self) { try other.server.start(host: "127.0.0.1", port: port) }
    }

    /// A flood must not cause a search for each piece of input.
    @Test func aFailedSearchForMemoryToFreeIsNotRepeatedAtOnce() throws {
        let table = ConnectionTable(limits: GatewayLimits())
        let holders = EvictionQueue(limit: 20_000, connections: table)
        let sender = try PeerSocket(in: table, .receiving)
        let now = MonotonicClock.now + 2 * MonotonicClock.second
        #expect(!holders.makeRoom(at: now))
        let held = MemoryReservation(BodyMemory(limit: 20_000))
        #expect(held.take(15_000))
        holders.add(held, of: sender.peer)
        #expect(!holders.makeRoom(at: now + MonotonicClock.second / 10 - 1))
        #expect(holders.makeRoom(at: now + MonotonicClock.second / 10))
    }

    /// The server closes the slow connection.
    @Test func memoryOfASlowConnectionIsFreedForAnotherAtOnce() throws {
        let table = ConnectionTable(limits: GatewayLimits())
        let memory = BodyMemory(limit: 20_000)
        let holders = EvictionQueue(limit: 20_000, connections: table)
        let now = MonotonicClock.now
        let slow = try PeerSocket(in: table, .receiving, at: now)
        let (first, second) = (MemoryReservation(memory), MemoryReservation(memory))
        #expect(first.take(15_000))
        holders.add(first, of: slow.peer)
        #expect(!second.take(10_000))
        // A connection that has just begun keeps its memory.
        #expect(!holders.makeRoom(at: now))
        #expect(holders.makeRoom(at: now + 2 * MonotonicClock.second))
        #expect(second.take(10_000))
        #expect(first.bytes == 0 && !first.take(1) && !holders.remove(first))
        #expect(!slow.isOpen)
        // Its memory is not returned twice.
        first.give(15_000)
        #expect(!MemoryReservation(memory).take(11_000))
    }
}
