import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayHTTP
@testable import GatewayModel

/// Memory and connection limits under floods, with small limits.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct FloodTests {
    private func withGateway(
        _ configure: (inout GatewayConfiguration) -> Void = { _ in }, _ body: (GatewayFixture) throws -> Void
    ) throws {
        let fixture = try GatewayFixture(enforcement: .disabled) {
            // With one loop, a round trip shows that the server has read all earlier input.
            $0.loopCount = 1
            configure(&$0)
        }
        try body(fixture)
    }

    private func begun(_ port: UInt16) throws -> RawConnection {
        let connection = try RawConnection(port: port)
        connection.send(beginning(10) + "{")
        return connection
    }

    /// The header of a request that stays open. Its body is not JSON, so an admitted request gets 400.
    private func beginning(_ length: Int) -> String {
        "POST /v1/batch HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n"
    }

    private func table(connections: Int) -> ConnectionTable {
        var limits = GatewayLimits()
        limits.connections = connections
        return ConnectionTable(limits: limits)
    }

    @Test func largeBodiesBeyondTheMemoryLimitAreRejected() throws {
        try withGateway({ $0.limits.bodyMemoryBytes = 1 << 20 }) { fixture in
            let large = try RawConnection(port: fixture.gateway.port)
            // Almost all memory that large bodies may use. A quarter of the limit is reserved for small bodies.
            large.send(beginning(900_000))
            large.send([UInt8](repeating: 0x20, count: 750_000))
            let other = try RawConnection(port: fixture.gateway.port)
            // Each pass of the loop reads more of the large body, so all its bytes are read before the other begins.
            for _ in 0..<200 { _ = other.get("/livez") }
            other.send(beginning(400_000))
            other.send([UInt8](repeating: 0x20, count: 400_000))
            // Only one fits: the second is rejected, or the first is closed if it is older than a second.
            if other.answer()?.status != 503 { #expect(large.isClosedByServer()) }
            let small = try RawConnection(port: fixture.gateway.port)
            let answer = small.post(batch(trackEvent("m-1")), headers: ["X-Write-Key": fixture.writeKey])
            #expect(answer?.json["accepted"] as? Int == 1)
        }
    }

    @Test func bodyMemoryIsReleasedWithTheResponse() throws {
        try withGateway({ $0.limits.bodyMemoryBytes = 1 << 20 }) { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            for number in 0..<5 {
                let text = String(repeating: "x", count: 400_000)
                let event =
                    #"{"batch":[{"type":"track","messageId":"m-\#(number)","anonymousId":"a","#
                    + #""event":"E","properties":{"t":"\#(text)"}}]}"#
                let answer = connection.post(event, headers: ["X-Write-Key": fixture.writeKey])
                #expect(answer?.json["accepted"] as? Int == 1)
            }
        }
    }

    @Test func unpackedBodiesCountTowardsTheMemoryLimit() throws {
        try withGateway({ $0.limits.bodyMemoryBytes = 1 << 20 }) { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            let noise = (0..<12_000).map { _ in UInt8.random(in: .min ... .max) }
            let body = try gzip(noise + [UInt8](repeating: 0x20, count: 1_000_000))
            let answer = connection.post(bytes: body, headers: ["Content-Encoding": "gzip"])
            #expect(answer?.status == 503)
            #expect(answer?.json["code"] as? String == "overloaded")
            #expect(answer?.headers["retry-after"] == "1")
        }
    }

    @Test func sharedStaticDocumentsReserveNoMemory() throws {
        try withGateway({ $0.limits.bodyMemoryBytes = 8 << 10 }) { fixture in
            let answer = try RawConnection(port: fixture.gateway.port).get("/openapi.json")
            #expect(answer?.status == 200)
            #expect((answer?.body.utf8.count ?? 0) > 8 << 10)
        }
    }

    @Test func storedRequestsAreAnsweredDespiteTheMemoryLimit() throws {
        try withGateway({ $0.limits.bodyMemoryBytes = 8 << 10 }) { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            // The response names each rejected event and exceeds all memory.
            let events = [trackEvent("m-1")] + Array(repeating: "{}", count: 900)
            let answer = connection.post(
                #"{"batch":[\#(events.joined(separator: ","))]}"#, headers: ["X-Write-Key": fixture.writeKey])
            #expect(answer?.status == 200)
            #expect(answer?.json["accepted"] as? Int == 1)
            #expect((answer?.body.utf8.count ?? 0) > 8 << 10)
            // The memory of the response is free again.
            let next = connection.post(batch(trackEvent("m-2")), headers: ["X-Write-Key": fixture.writeKey])
            #expect(next?.json["accepted"] as? Int == 1)
        }
    }

    /// A client repeats a rejected request. So a request that has changed data is answered despite the limit.
    @Test(arguments: [("GET", false, 503), ("POST", true, 503), ("POST", false, 200)])
    func aReadBeyondTheMemoryLimitIsRejected(method: String, changesNothing: Bool, status: Int) throws {
        var limits = GatewayLimits()
        limits.bodyMemoryBytes = 8 << 10
        let server = HTTPServer(limits: limits, observer: RequestRecorder()) { request in
            var response = HTTPResponse.text(
                200, request.path == "/" ? String(repeating: "x", count: 9_000) : "")
            response.changesNothing = changesNothing
            return .answer(response)
        }
        let port = try server.start(host: "127.0.0.1", port: 0)
        defer { server.stop(graceSeconds: 0) }
        let connection = try RawConnection(port: port)
        let answer = connection.send(method, "/", [:], [])
        #expect(answer?.status == status)
        #expect((answer?.json["code"] as? String == "overloaded") == (status == 503))
        #expect(connection.send(method, "/small", [:], [])?.status == 200)
    }

    @Test func anAddressHasAtMost16StreamedResponsesAtOnce() throws {
        let server = HTTPServer(limits: GatewayLimits(), observer: RequestRecorder()) { request in
            var response = HTTPResponse.text(200, "")
            let isEndless = request.path == "/endless"
            response.stream = ResponseStream(pull: { isEndless ? .nothing : .end })
            return .answer(response)
        }
        let port = try server.start(host: "127.0.0.1", port: 0)
        defer { server.stop(graceSeconds: 0) }
        let ended = try RawConnection(port: port)
        for _ in 0..<20 { #expect(ended.send("GET", "/", [:], [])?.status == 200) }
        let open = try (0..<16).map { _ in
            let connection = try RawConnection(port: port)
            connection.send("GET /endless HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(connection.line()?.contains(" 200 ") == true)
            return connection
        }
        #expect(ended.send("GET", "/endless", [:], [])?.status == 503)
        #expect(server.service.streams.take("192.0.2.1"))
        withExtendedLifetime(open) {}
    }

    @Test func aFalseGzipSizeIsInvalidEncoding() throws {
        try withGateway { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            var body = try gzip([UInt8](repeating: 0x20, count: 10_000))
            body[body.count - 4] = 1
            body[body.count - 3] = 0
            let answer = connection.post(bytes: body, headers: ["Content-Encoding": "gzip"])
            #expect(answer?.json["code"] as? String == "invalid_encoding")
        }
    }

    @Test func anAddressWithTooManyConnectionsLosesIdleOnesFirst() throws {
        try withGateway({ $0.limits.connectionsPerAddress = 2 }) { fixture in
            let idle = try RawConnection(port: fixture.gateway.port)
            #expect(idle.get("/livez")?.status == 200)
            let busy = try begun(fixture.gateway.port)
            #expect(idle.get("/livez")?.status == 200)
            let third = try begun(fixture.gateway.port)
            #expect(idle.isClosedByServer())
            // Now no connection is idle.
            #expect(try RawConnection(port: fixture.gateway.port).isClosedByServer())
            third.close()
            busy.send(String(repeating: " ", count: 9))
            #expect(busy.answer()?.status == 400)
        }
    }

    @Test func aTrustedProxyMayHaveAllConnections() throws {
        try withGateway({
            $0.limits.connectionsPerAddress = 1
            $0.trustedProxies = AddressRange.loopback
        }) { fixture in
            let connections = try (0..<5).map { _ in try begun(fixture.gateway.port) }
            for connection in connections {
                connection.send(String(repeating: " ", count: 9))
                #expect(connection.answer()?.status == 400)
            }
        }
    }

    @Test(.enabled(if: RawConnection.canChooseItsAddress))
    func aFullTableEvictsConnectionsOfTheAddressWithMost() throws {
        try withGateway({ $0.limits.connections = 4 }) { fixture in
            let port = fixture.gateway.port
            let greedy = try (0..<4).map { _ in try begun(port) }
            let other = try RawConnection(port: port, from: "127.0.0.9")
            #expect(other.get("/livez")?.status == 200)
            #expect(greedy.allSatisfy { $0.isClosedByServer() })
        }
    }

    @Test(.enabled(if: RawConnection.canChooseItsAddress))
    func aFullTableEvictsIdleConnectionsFirst() throws {
        try withGateway({ $0.limits.connections = 2 }) { fixture in
            let port = fixture.gateway.port
            let idle = try RawConnection(port: port)
            #expect(idle.get("/livez")?.status == 200)
            let busy = try begun(port)
            #expect(try RawConnection(port: port, from: "127.0.0.9").get("/livez")?.status == 200)
            #expect(idle.isClosedByServer())
            busy.send(String(repeating: " ", count: 9))
            #expect(busy.answer()?.status == 400)
        }
    }

    @Test func aConnectionThatEndsBeforeItsBodyIsClosed() throws {
        try withGateway { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            connection.send(
                "POST /v1/batch HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
            connection.endSending()
            #expect(connection.isClosedByServer())
        }
    }

    @Test func aChunkLineThatNeverEndsIsClosed() throws {
        try withGateway { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            connection.send("POST /v1/batch HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;")
            connection.send([UInt8](repeating: UInt8(ascii: "x"), count: 100_000))
            #expect(connection.answer()?.status == 400)
            #expect(connection.isClosedByServer())
        }
    }

    /// The descriptor of a removed connection may belong to another socket.
    @Test func theSocketOfARemovedConnectionIsNotShutDown() throws {
        let table = ConnectionTable(limits: GatewayLimits())
        let gone = try PeerSocket(in: table, .receiving)
        table.remove(gone.peer)
        table.close(gone.peer)
        #expect(gone.isOpen)
    }

    @Test func aClosedConnectionFreesOneSlotOnly() throws {
        let table = table(connections: 2)
        let (first, second) = (try PeerSocket(in: table, .handling), try PeerSocket(in: table, .handling))
        for _ in 0..<2 { table.close(first.peer) }
        #expect(!first.isOpen)
        table.remove(first.peer)
        let third = try PeerSocket(in: table, .handling)
        #expect(third.isAdmitted)
        #expect(try !PeerSocket(in: table, .handling).isAdmitted)
        #expect(table.count == 2)
        withExtendedLifetime([second, third]) {}
    }

    @Test(arguments: [
        (4_096, 1, 16_384, 4_096), (4_096, 1, 4_736, 4_096), (4_096, 1, 4_735, 4_095), (4_096, 1, 1_024, 409),
        (4_096, 2, 1_024, 204), (4_096, 1, 160, 64), (4, 1, 160, 4), (4_096, 1, 1, 1),
        (4_096, 1, Int.max, 4_096),
    ])
    func connectionsAreLimitedByOpenFiles(wanted: Int, listeners: Int, openFiles: Int, connections: Int) {
        let found = ProcessLimits.connections(wanted, listeners: listeners, openFiles: openFiles)
        #expect(found == connections)
    }

    @Test func idleConnectionsAreClosedWhenNoDescriptorIsLeft() throws {
        let reports = Lock(0)
        let table = ConnectionTable(limits: GatewayLimits()) { _ in reports.withLock { $0 += 1 } }
        let busy = try PeerSocket(in: table, .handling)
        let idle = try PeerSocket(in: table, .idle)
        let now = MonotonicClock.now
        #expect(idle.isOpen)
        for _ in 0..<3 { table.freeDescriptors(at: now) }
        #expect(!idle.isOpen && busy.isOpen)
        #expect(reports.withLock { $0 } == 1)
        table.freeDescriptors(at: now + 61 * MonotonicClock.second)
        #expect(reports.withLock { $0 } == 2)
    }

    @Test func closedConnectionsCountUntilTheirDescriptorsAreFree() throws {
        let table = table(connections: 10)
        var all = try (0..<10).map { _ in try PeerSocket(in: table, .handling) }
        for socket in all { table.close(socket.peer) }
        // The extra room for closing connections is eight.
        for _ in 0..<8 { all.append(try PeerSocket(in: table, .handling)) }
        #expect(all.allSatisfy { $0.isAdmitted })
        #expect(try !PeerSocket(in: table, .handling).isAdmitted)
        table.remove(all[0].peer)
        // An address with a connection cannot use the rest of the extra room.
        let greedy = try #require(NetworkAddress("192.0.2.1"))
        let first = try PeerSocket(in: table, .handling, unit: greedy)
        #expect(first.isAdmitted)
        for socket in all[1..<3] { table.remove(socket.peer) }
        #expect(try !PeerSocket(in: table, .handling, unit: greedy).isAdmitted)
        #expect(try PeerSocket(in: table, .handling, unit: NetworkAddress("192.0.2.2")).isAdmitted)
        withExtendedLifetime((all, first)) {}
    }

    @Test func aNewAddressIsAdmittedBesideOneWithAllConnections() throws {
        let table = table(connections: 2)
        let greedy = try #require(NetworkAddress("192.0.2.1"))
        let all = try (0..<2).map { _ in try PeerSocket(in: table, .receiving, unit: greedy) }
        let now = MonotonicClock.now
        #expect(try !PeerSocket(in: table, .new, unit: greedy, at: now).isAdmitted)
        #expect(try PeerSocket(in: table, .new, unit: NetworkAddress("192.0.2.2"), at: now).isAdmitted)
        withExtendedLifetime(all) {}
    }

    /// A flood must not cause a search for each new connection.
    @Test func aFailedSearchForAConnectionToEvictIsNotRepeatedAtOnce() throws {
        let table = table(connections: 1)
        let only = try PeerSocket(in: table, .handling)
        let now = MonotonicClock.now
        let tenth = MonotonicClock.second / 10
        #expect(try !PeerSocket(in: table, .new, at: now).isAdmitted)
        only.peer.enter(.idle, at: now)
        #expect(try !PeerSocket(in: table, .new, at: now + tenth - 1).isAdmitted)
        #expect(try PeerSocket(in: table, .new, at: now + tenth).isAdmitted)
        #expect(!only.isOpen)
    }

    @Test func thePermitsOfAllAddressesAreLimited() {
        let permits = AddressPermits(most: 16)
        #expect((1...20).filter { permits.take("192.0.2.\($0)") } == Array(1...16))
        permits.release("192.0.2.1")
        #expect(permits.take("192.0.2.20"))
    }

    @Test func oneAddressCannotUseAllPermits() {
        let permits = AddressPermits(most: 16)
        #expect((0..<100).filter { permits.take("2001:db8::\($0)") }.count == 4)
        #expect(permits.take("2001:db8:1::1"))
        #expect((0..<100).filter { _ in permits.take("") }.count == 4)
    }
}
