import CountersignBloomreach
import CountersignCore
import CountersignDelivery
import CountersignTesting
import CountersignTransport
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@Suite(.closing, .timeLimit(.minutes(5)))
struct BloomreachClientTests {
    private func ids(_ request: TransportRequest?) -> [String: String] {
        request?.json["customer_ids"] as? [String: String] ?? [:]
    }

    // MARK: Identity

    @Test func eventsKeepTheIdsThatTheyWereRecordedUnder() async throws {
        let device = try BloomreachDevice()
        let cookie = try #require(device.client.customerIDs["cookie"])
        #expect(cookie == cookie.uppercased() && UUID(uuidString: cookie) != nil)
        device.client.trackEvent("before")
        device.client.identifyCustomer(["registered": "ada", "cookie": "mine", "phone": ""])
        device.client.trackEvent("as ada")
        device.client.anonymize()
        device.client.trackEvent("after")
        #expect(await device.client.flush().isComplete)
        let seen = device.requests.map { ids($0) }
        let ada = ["cookie": cookie, "registered": "ada"]
        let anonymous = device.client.customerIDs
        #expect(seen == [["cookie": cookie], ada, ada, anonymous])
        #expect(anonymous.count == 1 && anonymous["cookie"] != cookie)
        #expect(
            device.lines.withLock { $0 }
                == ["You should never set cookie ID directly on a customer. Ignoring."])
    }

    @Test func customerThatCannotBeReadIsNotReplaced() async throws {
        let folder = TemporaryFolder()
        // A directory at the file's path cannot be read as a file, even by root.
        let path = folder.url.appendingPathComponent("bloomreach/customer.json")
        try FileManager.default.createDirectory(at: path, withIntermediateDirectories: true)
        let error = #expect(throws: CountersignError.self) { try BloomreachDevice(directory: folder.url) }
        #expect(error?.code == .notStored)
        // The failed client created no other file.
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path + "/bloomreach")
                == ["customer.json"])
    }

    @Test func givenPropertiesOverrideDefaultProperties() async throws {
        let device = try BloomreachDevice {
            $0.defaultProperties = ["a": 1, "b": 1]
            $0.allowDefaultCustomerProperties = false
        }
        device.client.trackEvent("event", properties: ["b": 2])
        device.client.trackCustomer(properties: ["b": 2])
        await device.client.flush()
        #expect(
            device.requests.map { ($0.json["properties"] as? [String: Any])?.compactMapValues { $0 as? Int } }
                == [["a": 1, "b": 2], ["b": 2]])
    }

    // MARK: Delivery

    @Test(arguments: [
        (403, #"{"success":true}"#, 1), (401, #"{"success":false,"error":"Access key not found"}"#, 1),
        (400, #"{"success":false,"error":"Invalid project id"}"#, 1), (402, #"{"success":true}"#, 1),
        (200, #"{"success":false,"errors":["Not authorized to add event of specified type"]}"#, 1),
        (200, "<html>Welcome to our hotel</html>", 1), (302, "", 1), (503, "", 1),
        (200, #"{"success":true,"errors":[]}"#, 0),
    ])
    func onlyAcceptanceDeletesEvents(status: Int, body: String, queued: Int) async throws {
        let device = try BloomreachDevice(server: ScriptedTransport { _ in .json(status, body) })
        device.client.trackEvent("event")
        await device.client.flush()
        let snapshot = await device.client.snapshot()
        #expect(snapshot.queued == queued)
        #expect(snapshot.quarantined == 0)
        #expect(snapshot.sent == 1 - queued)
    }

    @Test func noEventIsLostHoweverOftenItFails() async throws {
        let device = try BloomreachDevice(server: ScriptedTransport { _ in .json(401, "{}") })
        let failures = Lock<[CountersignError]>([])
        device.client.onDeliveryFailure { error in failures.withLock { $0.append(error) } }
        device.client.trackEvent("event")
        for _ in 0..<70 { await device.client.flush() }
        #expect(await device.client.snapshot().queued == 1)
        #expect(device.requests.count == 70)
        #expect(failures.withLock { $0.map(\.code) } == [.authorizationRefused])
        #expect(failures.withLock { $0.first?.projectToken } == "0aef3a96-3804")
        device.server.setHandler { _ in BloomreachDevice.success }
        #expect(await device.client.flush().isComplete)
    }

    /// A network's login page does not reject the project's key. The device may change networks at any time.
    @Test func aCaptivePortalPageIsNotARejectedKey() async throws {
        let device = try BloomreachDevice(
            server: ScriptedTransport { _ in .json(403, "<html>Welcome to our hotel</html>") })
        let failures = Lock<[CountersignError]>([])
        device.client.onDeliveryFailure { error in failures.withLock { $0.append(error) } }
        device.client.trackEvent("event")
        for _ in 0..<60 { await device.client.flush() }
        let snapshot = await device.client.snapshot()
        #expect(snapshot.queued == 1 && snapshot.parked.isEmpty)
        #expect(failures.withLock { $0.allSatisfy { $0.code != .authorizationRefused } })
        device.server.setHandler { _ in BloomreachDevice.success }
        #expect(await device.client.flush().isComplete)
    }

    @Test func warningsOfTheServerAreNotFailures() async throws {
        let device = try BloomreachDevice(
            server: ScriptedTransport { _ in
                .json(
                    200,
                    #"{"success":true,"errors":[],"auth_warning":{"error_code":26,"reason":"MISSING_TOKEN"}}"#
                )
            })
        let failures = Lock(0)
        device.client.onDeliveryFailure { _ in failures.withLock { $0 += 1 } }
        device.client.trackEvent("event")
        #expect(await device.client.flush().delivered == 1)
        #expect(failures.withLock { $0 } == 0)
    }

    @Test(arguments: [401, 403])
    func aProjectWithARejectedKeyDoesNotDelayOthers(status: Int) async throws {
        let server = ScriptedTransport { request in
            request.header("Authorization") == "Token bad" ? .json(status, "{}") : BloomreachDevice.success
        }
        let device = try BloomreachDevice(server: server) {
            $0.projectMapping[.trackEvent] = [try BloomreachDevice.project("other", key: "bad")]
        }
        for number in 0..<3 { device.client.trackEvent("event \(number)") }
        await device.client.flush()
        var snapshot = await device.client.snapshot()
        #expect(snapshot.sent == 3)
        #expect(snapshot.queued == 3)
        #expect(snapshot.parked.map(\.userID) == ["other"])
        // Events of the old key are sent with the new key.
        device.client.anonymize(mapping: [.trackEvent: [try BloomreachDevice.project("other", key: "good")]])
        await device.client.flush()
        snapshot = await device.client.snapshot()
        #expect(snapshot.sent == 6)
    }

    @Test func eventsOfAnEarlierProjectAreSentWithItsOwnKey() async throws {
        let device = try BloomreachDevice()
        device.client.trackEvent("old")
        let again = try await device.restarted {
            $0.project = try BloomreachDevice.project("new", key: "new-key")
        }
        again.client.trackEvent("new")
        #expect(await again.client.flush().isComplete)
        #expect(
            again.requests.map(\.url.path)
                == ["old", "new"].enumerated().map { index, _ in
                    "/track/v2/projects/\(index == 0 ? "0aef3a96-3804" : "new")/customers/events"
                })
        #expect(again.requests.map { $0.header("Authorization") } == ["Token key", "Token new-key"])
    }

    @Test func aQuarantinedEventHasNoAPIKeyAndCanBeRequeuedAndDeleted() async throws {
        let device = try BloomreachDevice(
            server: ScriptedTransport { request in
                String(decoding: request.body, as: UTF8.self).contains("\"bad\"")
                    ? .json(402, "") : .json(200, #"{"success":true}"#)
            }
        ) {
            $0.project = try BloomreachDevice.project(key: "very-secret")
        }
        device.client.trackEvent("bad")
        device.client.trackEvent("good")
        await device.client.flush()
        let event = try #require(try await device.client.quarantinedEvents().first)
        let text = String(decoding: event.body, as: UTF8.self)
        #expect(text.contains("customers/events") && !text.contains("very-secret"))
        #expect((try? JSONSerialization.jsonObject(with: Data(event.body))) is [String: Any])
        #expect(try await device.client.requeueQuarantinedEvents() == 1)
        await device.client.flush()
        device.client.trackEvent("good")
        await device.client.flush()
        #expect(try await device.client.deleteQuarantinedEvents() == 1)
        #expect(try await device.client.quarantinedEvents().isEmpty)
    }

    // MARK: Queries

    @Test(arguments: [
        (401, "", "authorization_refused", false),
        (403, #"{"success":true}"#, "authorization_refused", false),
        (402, #"{"success":true}"#, "refused", false), (404, "", "refused", false), (410, "", "gone", false),
        (429, "", "server_failed", true), (500, "", "server_failed", true), (302, "", "refused", false),
        (200, #"{"success":false}"#, "refused", false), (200, "", "not_understood", true),
        (200, #"{"results":[]}"#, "not_understood", true), (200, "[]", "not_understood", true),
        (204, "", "not_understood", true), (403, "<html>Log in</html>", "not_understood", true),
    ])
    func failedFetchesThrow(status: Int, body: String, code: String, isWorthRetrying: Bool) async throws {
        let device = try BloomreachDevice(server: ScriptedTransport { _ in .json(status, body) })
        let error = await #expect(throws: CountersignError.self) { try await device.client.fetchConsents() }
        #expect(error?.code.rawValue == code)
        #expect(error?.status == status)
        #expect(error?.isWorthRetrying == isWorthRetrying)
    }

    @Test func theErrorHasTheServersRetryAfter() async throws {
        let device = try BloomreachDevice(
            server: ScriptedTransport { _ in TransportResponse(status: 503, headers: [("Retry-After", "7")]) }
        )
        let error = await #expect(throws: CountersignError.self) { try await device.client.fetchConsents() }
        #expect(error?.retryAfter == 7)
    }

    @Test func modelsTolerateUnexpectedMembers() async throws {
        let device = try BloomreachDevice(
            server: ScriptedTransport { request in
                switch request.url.path {
                case let path where path.hasSuffix("categories"):
                    .json(
                        200,
                        #"{"success":true,"results":[7,{"name":"no id"},{"id":"c","legitimate_interest":1,"sources":{"crm":true,"odd":[]},"translations":{"":{"name":"N","description":null},"en":null}}]}"#
                    )
                case let path where path.hasSuffix("inappmessages"):
                    .json(
                        200,
                        #"{"success":true,"data":[null,{"id":"a"},{"id":"b","load_delay":1500,"date_filter":{"enabled":true,"from_date":5},"variant_id":-1,"has_tracking_consent":"false"}]}"#
                    )
                default: .json(200, #"{"success":true,"messages":null}"#)
                }
            })
        let consent = try #require(try await device.client.fetchConsents().first)
        #expect(consent.id == "c" && consent.hasLegitimateInterest && consent.sources == ["crm": true])
        #expect(consent.translations[""]?.name == "N" && consent.translations[""]?.text == nil)
        let messages = try await device.client.fetchInAppMessages()
        #expect(messages.map(\.id) == ["a", "b"])
        #expect(messages.first?.frequency == "always" && messages.first?.hasTrackingConsent == true)
        #expect(messages.last?.delay == 1.5 && messages.last?.from == Date(timeIntervalSince1970: 5))
        #expect(messages.last?.variantID == -1 && messages.last?.hasTrackingConsent == false)
        #expect(try await device.client.fetchAppInbox().isEmpty)
    }

    // MARK: App Inbox

    private static func inbox(_ ids: [String], token: String, isRead: Bool = false) -> TransportResponse {
        // The creation time grows with the id.
        let messages = ids.map {
            #"{"id":"\#($0)","type":"html","is_read":\#(isRead),"create_time":\#($0.utf8.reduce(0) { $0 + Int($1) }),"content":{"title":"T","message":"<p>Hi</p>"}}"#
        }
        return .json(
            200,
            #"{"success":true,"messages":[\#(messages.joined(separator: ","))],"sync_token":"\#(token)"}"#)
    }

    @Test func newMessagesAreMergedAndSurviveARestart() async throws {
        let answers = Lock([
            Self.inbox(["b"], token: "s2", isRead: true), Self.inbox(["a", "b"], token: "s1"),
        ])
        let device = try BloomreachDevice(
            server: ScriptedTransport { _ in
                answers.withLock { $0.popLast() } ?? .json(200, #"{"success":true,"messages":[]}"#)
            })
        #expect(try await device.client.fetchAppInbox().map(\.id) == ["b", "a"])
        let second = try await device.client.fetchAppInbox()
        #expect(second.map(\.isRead) == [true, false])
        #expect(second.map(\.syncToken) == ["s2", "s1"])
        #expect(second.first?.title == "T" && second.first?.message == "<p>Hi</p>")
        let again = try await device.restarted()
        #expect(await again.client.cachedAppInbox() == second)
        #expect(try await again.client.fetchAppInbox() == second)
        #expect(again.requests.last?.json["sync_token"] as? String == "s2")
    }

    @Test func a410DropsTheSyncTokenAndFetchesTheInboxAgain() async throws {
        let gone = TransportResponse.json(410, #"{"success":false,"error":"invalid sync token"}"#)
        let device = try BloomreachDevice(server: ScriptedTransport { _ in Self.inbox(["a"], token: "s1") })
        _ = try await device.client.fetchAppInbox()
        device.server.setHandler { request in
            request.json["sync_token"] == nil ? Self.inbox(["b"], token: "s2") : gone
        }
        #expect(try await device.client.fetchAppInbox().map(\.id) == ["b"])
        #expect(device.requests.map { $0.json["sync_token"] as? String } == [nil, "s1", nil])
        // A server that always answers 410 causes at most one retry.
        device.server.setHandler { _ in gone }
        #expect(await code { _ = try await device.client.fetchAppInbox() } == .gone)
        #expect(device.requests.count == 5)
        #expect(await code { _ = try await device.client.fetchAppInbox() } == .gone)
        #expect(device.requests.count == 6, "without a sync token a 410 is not retried")
    }

    @Test func messageIsMarkedForTheCustomerItWasFetchedFor() async throws {
        let device = try BloomreachDevice(server: ScriptedTransport { _ in Self.inbox(["a"], token: "s1") })
        device.client.identifyCustomer(["registered": "ada"])
        let ada = device.client.customerIDs
        let message = try #require(try await device.client.fetchAppInbox().first)
        device.client.identifyCustomer(["registered": "grace"])
        #expect(await device.client.cachedAppInbox().isEmpty)
        _ = try await device.client.fetchAppInbox()
        try await device.client.markAsRead(message)
        #expect(ids(device.requests.last) == ada)
        #expect(device.requests.last?.json["sync_token"] as? String == "s1")
        #expect(await device.client.cachedAppInbox().map(\.isRead) == [false])
        device.client.anonymize(project: try BloomreachDevice.project("other"))
        #expect(await code { try await device.client.markAsRead(message) } == .unknownMessage)
    }

    @Test func failedMarkLeavesTheMessageUnread() async throws {
        let device = try BloomreachDevice(server: ScriptedTransport { _ in Self.inbox(["a"], token: "s1") })
        _ = try await device.client.fetchAppInbox()
        device.server.setHandler { _ in .json(200, #"{"success":false}"#) }
        #expect(await code { try await device.client.markAsRead(messageID: "a") } == .refused)
        #expect(await device.client.cachedAppInbox().map(\.isRead) == [false])
        device.server.setHandler { _ in BloomreachDevice.success }
        try await device.client.markAsRead(messageID: "a")
        #expect(await device.client.cachedAppInbox().map(\.isRead) == [true])
    }

    @Test func messageThatWasNotFetchedIsNotMarked() async throws {
        let device = try BloomreachDevice()
        #expect(await code { try await device.client.markAsRead(messageID: "x") } == .unknownMessage)
        #expect(device.requests.isEmpty)
        #expect(device.lines.withLock { $0 } == ["Unable to mark message x as read, try to fetch AppInbox"])
    }

    @Test func anInboxFetchedForAnEarlierCustomerIsFetchedAgain() async throws {
        let box = Lock<BloomreachClient?>(nil)
        let device = try BloomreachDevice(
            server: ScriptedTransport { request in
                guard (request.json["customer_ids"] as? [String: String])?["registered"] == nil else {
                    return Self.inbox(["adas"], token: "s2")
                }
                box.withLock { $0 }?.identifyCustomer(["registered": "ada"])
                return Self.inbox(["nobodys"], token: "s1")
            })
        box.withLock { $0 = device.client }
        #expect(try await device.client.fetchAppInbox().map(\.id) == ["adas"])
        #expect(device.requests.map { $0.json["sync_token"] as? String } == [nil, nil])
        box.withLock { $0 = nil }
    }

    @Test func aRejectedTokenOfAnEarlierCustomerHasItsOwnCode() async throws {
        let box = Lock<BloomreachClient?>(nil)
        let device = try BloomreachDevice(
            server: ScriptedTransport { _ in Self.inbox(["a"], token: "s1") }
        ) { $0.authorize(.instance(SampleProvider())) }
        box.withLock { $0 = device.client }
        device.client.identifyCustomer(["registered": "ada"])
        let message = try #require(try await device.client.fetchAppInbox().first)
        device.server.setHandler { _ in
            box.withLock { $0 }?.anonymize()
            return .json(401, #"{"success":false,"error":"expired"}"#)
        }
        let error = await #expect(throws: CountersignError.self) {
            try await device.client.markAsRead(message)
        }
        #expect(error?.code == .customerChanged)
        #expect(error?.status == 401)
        #expect(await device.client.cachedAppInbox().isEmpty)
        box.withLock { $0 = nil }
    }

    @Test func aChangeOfCustomerIsReportedBeforeTheNextProviderCall() async throws {
        let provider = SampleProvider { "a.b.c" }
        let device = try BloomreachDevice { $0.authorize(.instance(provider)) }
        device.client.identifyCustomer(["registered": "ada"])
        device.client.identifyCustomer(["registered": "ada"])
        let ada = device.client.customerIDs
        device.client.anonymize()
        _ = try await device.client.fetchAppInbox()
        #expect(provider.customers.withLock { $0 } == [ada, device.client.customerIDs])
    }

    @Test func aProviderClassIsInstantiatedAgainForAnotherCustomer() async throws {
        let name = "CountersignBloomreachTests.CountingProvider"
        let device = try BloomreachDevice { $0.authorize(.className(name)) }
        _ = try await device.client.fetchAppInbox()
        device.client.anonymize()
        _ = try await device.client.fetchAppInbox()
        let tokens = device.requests.compactMap { $0.header("Authorization") }
        #expect(tokens.count == 2 && Set(tokens).count == 2)
    }
}

/// Returns one token for the lifetime of the provider.
final class CountingProvider: NSObject, AuthorizationProviderType {
    private let token = UUID().uuidString
    required override init() {}
    func getAuthorizationToken() -> String? { token }
}
