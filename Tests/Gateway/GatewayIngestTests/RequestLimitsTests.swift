import CountersignGatewayTesting
import GatewayModel
import GatewayTestSupport
import Testing

/// The limits of one request, in every dialect. A request at a limit is accepted.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct RequestLimitsTests {
    private let fixture: GatewayFixture
    private let connection: any TestClient

    /// A request may have three events of 300 bytes.
    init() throws {
        var limits = GatewayLimits()
        limits.batchEvents = 3
        limits.eventBytes = 300
        fixture = try GatewayFixture(.standard, enforcement: .disabled, limits: limits) {
            $0.limits.bodyBytes = 4_000
        }
        connection = try fixture.client()
    }

    /// A body with `count` events, the first of which is `bytes` long.
    private func body(_ shape: WireShape, _ count: Int, bytes: Int? = nil) -> [UInt8] {
        var events = (0..<count).map { shape.event("m-\($0)") }
        if let bytes {
            let padding = bytes - events[0].utf8.count - #","x":"""#.utf8.count
            events[0] = shape.event("m-0", ["x": "\"\(String(repeating: "x", count: padding))\""])
        }
        return shape.body(events.map { Array($0.utf8) })
    }

    private func post(_ body: [UInt8], _ shape: WireShape) throws -> TestAnswer {
        try shape.send(body, to: fixture, connection)
    }

    private func stored() throws -> Int { try fixture.rows("message_id").count }

    @Test(arguments: WireShape.lists)
    func aBatchOverTheEventLimitIsRejected(shape: WireShape) throws {
        let rejected = try post(body(shape, 4), shape)
        #expect(rejected.status == 413)
        #expect(rejected.json["code"] as? String == "batch_too_large")
        #expect(try stored() == 0)
        #expect((200...201).contains(try post(body(shape, 3), shape).status))
        #expect(try stored() == 3)
    }

    @Test(arguments: WireShape.all)
    func anEventThatIsTooLongIsRejectedAlone(shape: WireShape) throws {
        let count = shape.isSingle ? 1 : 3
        #expect(try post(body(shape, count, bytes: 301), shape).body.contains("at most 300 bytes"))
        #expect(try stored() == count - 1)
        if !shape.isSingle {
            let metrics = connection.get("/metrics")?.body
            #expect(metrics?.contains(#"events_total{app="shop",outcome="rejected"} 1"#) == true)
        }
        #expect((200...201).contains(try post(body(shape, 1, bytes: 300), shape).status))
        #expect(try stored() == count)
    }

    /// The parameters of a request are stored with each of its locations.
    @Test func parametersCopiedToEachLocationCountTowardsTheLimit() throws {
        let locations = (1...3).map { #"{"uuid":"u-\#($0)","coords":{}}"# }.joined(separator: ",")
        func body(_ parameters: Int) -> [UInt8] {
            Array(#"{"location":[\#(locations)],"a":"\#(String(repeating: "a", count: parameters))"}"#.utf8)
        }
        let alone = try post(body(280), .locations)
        #expect(alone.status == 200)
        #expect(alone.body.contains("event_too_large"))
        let rejected = try post(body(1_200), .locations)
        #expect(rejected.status == 413)
        #expect(rejected.json["code"] as? String == "batch_too_large")
        #expect(try stored() == 0)
    }
}
