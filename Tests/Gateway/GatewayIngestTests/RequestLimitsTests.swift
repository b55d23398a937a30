import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

/// How much one request may hold, in each dialect: as much as the limit is taken, and not one more.
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

    enum Dialect: CaseIterable {
        case native, brazeEvents, brazeAttributes, brazeBoth, locations, bareLocations, wrappedLocations,
            mixedLocations

        /// A body with `count` events, the first of which is `bytes` long.
        func body(_ count: Int, bytes: Int? = nil) -> String {
            var events = (0..<count).map(event)
            if let bytes {
                let padding = bytes - events[0].utf8.count - #","x":"""#.utf8.count
                events[0] =
                    String(events[0].dropLast()) + #","x":"\#(String(repeating: "x", count: padding))"}"#
            }
            let list = events.joined(separator: ",")
            return switch self {
            case .native: #"{"batch":[\#(list)]}"#
            case .brazeEvents: #"{"device_id":"d","events":[\#(list)]}"#
            case .brazeAttributes: #"{"device_id":"d","attributes":[\#(list)]}"#
            case .brazeBoth:
                #"{"device_id":"d","events":[\#(events[0])],"attributes":[\#(events.dropFirst().joined(separator: ","))]}"#
            case .locations: #"{"location":[\#(list)]}"#
            case .bareLocations: "[\(list)]"
            case .wrappedLocations: "[\(events.map { #"{"location":[\#($0)]}"# }.joined(separator: ","))]"
            case .mixedLocations:
                #"[{"location":[\#(events.dropLast().joined(separator: ","))]},{"location":\#(events[count - 1])}]"#
            }
        }

        private func event(_ number: Int) -> String {
            switch self {
            case .native: trackEvent("m-\(number)")
            case .brazeEvents, .brazeAttributes, .brazeBoth: #"{"name":"e","time":\#(number + 1)}"#
            case .locations, .bareLocations, .wrappedLocations, .mixedLocations:
                #"{"uuid":"u-\#(number)","coords":{}}"#
            }
        }
    }

    private func post(_ body: String, _ dialect: Dialect) throws -> TestAnswer {
        switch dialect {
        case .native: return try #require(connection.post(body, headers: ["X-Write-Key": fixture.writeKey]))
        case .brazeEvents, .brazeAttributes, .brazeBoth:
            return try #require(
                connection.post(
                    body, path: "/api/v3/data", headers: ["X-Braze-Api-Key": fixture.writeKey]))
        case .locations, .bareLocations, .wrappedLocations, .mixedLocations: return try postLocations(body)
        }
    }

    private func postLocations(_ body: String) throws -> TestAnswer {
        let token = try fixture.signingKey.sign(claims: [
            "sub": "device-1", "aud": "shop",
            "exp": .integer(Int64(Date().timeIntervalSince1970 + 600)),
        ])
        return try #require(
            connection.post(body, path: "/api/locations", headers: ["Authorization": "Bearer " + token]))
    }

    private func stored() throws -> Int { try fixture.rows("message_id").count }

    @Test(arguments: Dialect.allCases)
    func aRequestHasAsManyEventsAsItMay(dialect: Dialect) throws {
        let refused = try post(dialect.body(4), dialect)
        #expect(refused.status == 413)
        #expect(refused.json["code"] as? String == "batch_too_large")
        #expect(try stored() == 0)
        #expect((200...201).contains(try post(dialect.body(3), dialect).status))
        #expect(try stored() == 3)
    }

    @Test(arguments: Dialect.allCases)
    func anEventThatIsTooLongIsRejectedAlone(dialect: Dialect) throws {
        let answer = try post(dialect.body(3, bytes: 301), dialect)
        #expect(answer.body.contains("event_too_large"))
        #expect(try stored() == 2)
        #expect(!(try post(dialect.body(1, bytes: 300), dialect)).body.contains("event_too_large"))
    }

    /// The parameters of a request are stored with each of its locations.
    @Test func copiesOfParametersCount() throws {
        let locations = (1...3).map { #"{"uuid":"u-\#($0)","coords":{}}"# }.joined(separator: ",")
        func body(_ parameters: Int) -> String {
            #"{"location":[\#(locations)],"a":"\#(String(repeating: "a", count: parameters))"}"#
        }
        let alone = try postLocations(body(280))
        #expect(alone.status == 200)
        #expect(alone.body.contains("event_too_large"))
        let refused = try postLocations(body(1_200))
        #expect(refused.status == 413)
        #expect(refused.json["code"] as? String == "batch_too_large")
        #expect(try stored() == 0)
    }
}
