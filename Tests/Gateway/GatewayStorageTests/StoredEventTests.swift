import CountersignCore
import Foundation
import GatewayTestSupport
import Testing

@testable import CountersignGatewayTesting
@testable import GatewayModel
@testable import GatewayStorage

/// Serialization and paging of stored events.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct StoredEventTests {
    private static let texts = [
        "plain", "", "a\"quote", "back\\slash", "line\nbreak", "\u{7F}", "\u{1}", "é", "🦊", "~ }",
        String(repeating: "x", count: 5_000), String(repeating: "\"\u{0}", count: 3_000),
    ]

    @Test(arguments: texts)
    func storedEventTextsAreEscapedAsJSON(text: String) throws {
        let proof = EventProof(
            verdict: .verified, code: -401, keyID: text, enforcement: nil, dialect: text, requestID: "r",
            tokenID: text)
        let event = StoredEvent(
            sequence: .max, messageID: text, type: "track", userID: nil, anonymousID: text, name: text,
            timestampMilliseconds: .min, receivedMilliseconds: 0, proof: proof, body: Array("{}".utf8))
        var line: [UInt8] = []
        event.write(to: &line, position: "AcLx")
        let expected: JSONValue = [
            "anonymous_id": .string(text), "body": [:], "code": -401, "dialect": .string(text),
            "enforcement": .null, "key_id": .string(text), "message_id": .string(text), "name": .string(text),
            "position": "AcLx", "received_ms": 0, "request_id": "r", "seq": .integer(.max),
            "timestamp_ms": .integer(.min), "token_id": .string(text), "type": "track", "user_id": .null,
            "verdict": "verified",
        ]
        // The body comes first.
        let members = String(decoding: expected.bytes, as: UTF8.self).replacing(#""body":{},"#, with: "")
        #expect(String(decoding: line, as: UTF8.self) == #"{"body":{},"# + members.dropFirst())
        #expect(event.messageID == text && event.userID == nil && event.proof == proof)
    }

    @Test func claimsAreTheLastMemberAndHiddenWithTheContent() {
        let proof = EventProof(
            verdict: .verified, dialect: "native", requestID: "r", claims: #"{"plan":"pro"}"#)
        let event = StoredEvent(
            sequence: 1, messageID: "m", type: "track", userID: "u", anonymousID: nil, name: nil,
            timestampMilliseconds: 1, receivedMilliseconds: 2, proof: proof, body: Array("{}".utf8))
        var lines: [[UInt8]] = [[], []]
        event.write(to: &lines[0])
        event.withoutContent(userID: nil, anonymousID: nil).write(to: &lines[1])
        let texts = lines.map { String(decoding: $0, as: UTF8.self) }
        #expect(texts[0].hasSuffix(#""verdict":"verified","claims":{"plan":"pro"}}"#))
        #expect(texts[1].hasSuffix(#""verdict":"verified"}"#))
    }

    @Test func anEventWithoutVerdictHasNoProof() {
        let event = StoredEvent(
            sequence: 1, messageID: "m", type: "track", userID: "u", anonymousID: nil, name: nil,
            timestampMilliseconds: 1, receivedMilliseconds: 2, proof: nil, body: Array("{}".utf8))
        var line: [UInt8] = []
        event.write(to: &line)
        #expect(event.proof == nil && event.verdict == "unknown")
        #expect(String(decoding: line, as: UTF8.self).hasSuffix(#""user_id":"u","verdict":"unknown"}"#))
    }

    /// Pages join although two apps store events alternately and some events are deleted.
    @Test(arguments: [1, 2, 7, 300, 1_000])
    func pagesOfAnyLengthReturnEachEventOnce(limit: Int) throws {
        let place = try TestStorage()
        let storage = try place.open()
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 24))
        defer { store.close() }
        var wanted: [String] = []
        for round in 0..<12 {
            let ids = (0..<(round * 13 % 60 + 1)).map { "m-\(round)-\($0)" }
            for app in ["shop", "kiosk"] {
                let batch = ids.enumerated().map { index, id in
                    StorageConformance.event(id, user: index % 7 == 3 ? "eve" : "ada")
                }
                _ = try StorageConformance.append(batch, of: app, to: store)
            }
            wanted += ids.enumerated().filter { $0.offset % 7 != 3 }.map(\.element)
        }
        let eve = CustomerIdentifier(name: "registered", value: "eve")
        #expect(try storage.people.delete(eve, in: "shop").events > 0)
        try place.waitForTransactions()
        var found: [String] = []
        var position: Int64 = 0
        while true {
            let range = try storage.log.follow(EventQuery(appID: "shop"), after: position, limit: limit)
            #expect(range.events.count <= limit)
            #expect(range.scannedThrough >= (range.events.last?.sequence ?? position))
            found += range.events.map(\.messageID)
            position = range.scannedThrough
            guard range.hasMore else { break }
        }
        #expect(found == wanted)
    }
}
