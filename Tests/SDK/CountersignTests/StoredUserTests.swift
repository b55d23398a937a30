import CountersignCore
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery
@testable import CountersignTransport

@Suite(.closing, .timeLimit(.minutes(5)))
struct StoredUserTests {
    @Test func anOptOutDeletesTheUser() async throws {
        let bench = try Bench()
        let first = try bench.makeClient()
        first.identify(userID: "ada", token: "a.a.a")
        try await first.optOut()
        first.identify(userID: "bob")
        await first.close()
        let second = try bench.makeClient()
        #expect(second.userID == nil)
    }

    @Test func anotherWriteKeyHasAnotherUser() async throws {
        var bench = try Bench()
        let first = try bench.makeClient()
        first.identify(userID: "ada")
        await first.close()
        bench.configuration.writeKey = "wk_other"
        let other = try bench.makeClient()
        #expect(other.userID == nil)
        other.identify(userID: "bob")
        await other.close()
        bench.configuration.writeKey = "wk_test"
        let again = try bench.makeClient()
        #expect(again.userID == "ada")
        await again.logOut()
        await again.close()
        bench.configuration.writeKey = "wk_other"
        let last = try bench.makeClient()
        #expect(last.userID == "bob")
    }

    @Test func concurrentLogOutsOfTwoProcessesAreBothStored() async throws {
        let folder = TemporaryFolder()
        let directory = folder.url
        let writing = ProviderThread.run {
            let other = StoredUser(directory: directory, writeKey: "wk_other")
            for serial in 0..<100 { try? other.change { $0.beginLogOut(of: "bob\(serial)", in: "b") } }
        }
        let user = StoredUser(directory: directory, writeKey: "wk_test")
        for serial in 0..<100 {
            try user.change { $0.beginLogOut(of: "ada\(serial)", in: "a") }
            #expect(try user.load().logOut(of: "ada\(serial)")?.state == .loggingOut)
        }
        await writing.value
        #expect(try user.load().loggingOut.count == 100)
        #expect(try StoredUser(directory: directory, writeKey: "wk_other").load().loggingOut.count == 100)
    }

    @Test func theLastWriterDecidesAndADamagedFileMeansNoUser() async throws {
        let bench = try Bench()
        let app = try bench.makeClient()
        let helper = try bench.makeClient()
        app.identify(userID: "ada")
        await app.close()
        helper.identify(userID: "bob")
        #expect(helper.userID == "bob")
        await helper.close()
        let next = try bench.makeClient()
        #expect(next.userID == "bob")
        await next.close()

        let file = StoredUser(directory: bench.configuration.instanceDirectory, writeKey: "wk_test").file
        try Data("{".utf8).write(to: URL(fileURLWithPath: file.path))
        let damaged = try bench.makeClient()
        #expect(damaged.userID == nil)
        damaged.identify(userID: "cy")
        await damaged.close()
        let mended = try bench.makeClient()
        #expect(mended.userID == "cy")
    }
}

@Suite(.closing, .timeLimit(.minutes(5)))
struct EventPropertiesTests {
    private struct Item: Encodable {
        var name: String
        var price: Double
    }

    private final class Foreign {}

    @Test func variablesOfAnyTypeNeedNoWrapping() async throws {
        var bench = try Bench()
        let logged = Lock([String]())
        bench.configuration.log = CountersignLog(isEnabled: { _ in true }) { _, message, metadata in
            if "\(message)".hasPrefix("property") {
                logged.withLock { $0.append(metadata["property"] ?? "") }
            }
        }
        let bodies = Lock([JSONValue]())
        bench.transport.setHandler { request in
            let body = JSONDocument.object(request.body)
            bodies.withLock {
                $0 += body?["batch"]?.array?.compactMap { $0["properties"] ?? $0["traits"] } ?? []
            }
            let count = body?["batch"]?.array?.count ?? 0
            return .json(200, #"{"success":true,"accepted":\#(count)}"#)
        }
        let client = try bench.makeClient()
        let (total, count, name, isNew) = (42.5, 3, "Ada", true)
        let (coupon, gift): (String?, Int?) = (nil, 7)
        let date = Date(timeIntervalSince1970: 1_750_000_000)
        client.track("literals", properties: ["total": 42.5, "list": [1, "a", nil]])
        client.track("empty", properties: ["total": total])
        client.track(
            "mixed",
            properties: [
                "total": total, "count": count, "name": name, "new": isNew, "coupon": coupon, "gift": gift,
                "at": date, "literal": 1, "item": Item(name: "Tea", price: 2),
                "items": [Item(name: "a", price: 1)],
                "tags": ["x", "y"], "big": UInt64.max,
            ])
        let any: [String: Any] = [
            "total": total, "foreign": Foreign(), "nested": ["a": [Foreign()]], "ok": name,
        ]
        client.track("any", properties: any)
        try await client.record("recorded", properties: ["total": total])
        try await client.record("recorded", properties: any)
        client.identify(userID: "ada", traits: ["name": name])
        #expect(await client.flush().isComplete)
        #expect(
            bodies.withLock { $0 } == [
                ["total": 42.5, "list": [1, "a", nil]], ["total": 42.5],
                [
                    "total": 42.5, "count": 3, "name": "Ada", "new": true, "coupon": nil, "gift": 7,
                    "at": "2025-06-15T15:06:40.000Z", "literal": 1, "item": ["name": "Tea", "price": 2],
                    "items": [["name": "a", "price": 1]], "tags": ["x", "y"], "big": "18446744073709551615",
                ], ["total": 42.5, "ok": "Ada", "nested": ["a": [nil]]], ["total": 42.5],
                ["total": 42.5, "ok": "Ada", "nested": ["a": [nil]]],
                ["name": "Ada"],
            ])
        #expect(Set(logged.withLock { $0 }) == ["foreign", "nested"])
    }

    @Test(arguments: [59, 60, 20_000])
    func deepPropertiesAreCutToTheGatewaysDepthLimit(levels: Int) async throws {
        let bench = try Bench()
        let deepest = Lock(0)
        bench.transport.setHandler { request in
            deepest.withLock { $0 = depth(of: request.body) }
            return .json(200, #"{"success":true,"accepted":1}"#)
        }
        let client = try bench.makeClient()
        let value = (0..<levels).reduce(JSONValue.integer(1)) { inner, _ in [inner] }
        client.track("deep", properties: ["value": value])
        #expect(await client.flush().isComplete)
        // Three levels around the properties.
        #expect(deepest.withLock { $0 } == 3 + min(levels + 1, JSONValue.maximumLevels))
    }
}
