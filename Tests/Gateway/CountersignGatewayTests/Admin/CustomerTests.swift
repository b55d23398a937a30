import CountersignCore
import CountersignGatewayTesting
import CountersignJOSE
import CountersignSQLite
import Foundation
import GatewayTestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayAdmin
@testable import GatewayIngest
@testable import GatewayModel
@testable import GatewayStorage

/// Customer profiles: creation, access and deletion.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct CustomerTests {
    private let bench: AdminBench

    init() throws { bench = try AdminBench() }

    private func send(_ bench: AdminBench, _ events: String) throws {
        let answer = try bench.client().post(
            #"{"batch":[\#(events)]}"#, headers: ["X-Write-Key": bench.writeKey])
        #expect(answer?.status == 200 && answer?.body.contains(#""rejected":[]"#) == true)
    }

    private func properties(_ answer: AdminBench.Answer) -> [String: String] {
        let list = answer.json["properties"] as? [[String: Any]] ?? []
        return Dictionary(uniqueKeysWithValues: list.map { ("\($0["name"] ?? "")", "\($0["value"] ?? "")") })
    }

    private func ids(_ answer: AdminBench.Answer) -> [[String]] {
        (answer.json["ids"] as? [[String: String]] ?? []).map { [$0["name"] ?? "", $0["value"] ?? ""] }
    }

    private static let ada = #"""
        {"type":"track","event":"Opened","messageId":"a1","anonymousId":"device-1"},
        {"type":"identify","messageId":"a2","userId":"ada","anonymousId":"device-1","traits":{"plan":"gold","age":41}},
        {"type":"group","messageId":"a3","userId":"ada","groupId":"acme","traits":{"seats":7}},
        {"type":"track","event":"Bought","messageId":"a4","userId":"ada"},
        {"type":"identify","messageId":"b1","userId":"bob","anonymousId":"device-2","traits":{"plan":"tin"}},
        {"type":"track","event":"Opened","messageId":"b2","anonymousId":"device-2"}
        """#

    @Test func identifyEventsCreateCustomers() throws {
        try send(bench, Self.ada)
        let owner = try bench.token("admin")
        let shown = try bench.ask("GET", "apps/shop/customers/ada", nil, owner)
        #expect(shown.status == 200)
        #expect(ids(shown) == [["registered", "ada"], ["cookie", "device-1"]])
        #expect(properties(shown).keys.sorted() == ["age", "group", "plan"])
        #expect(properties(shown)["plan"] == "gold" && properties(shown)["age"] == "41")
        #expect(shown.body.contains(#""value":{"id":"acme","traits":{"seats":7}}"#))
        #expect(shown.json["events"] as? Int == 4)
        // An older value never replaces a newer one. Null deletes a value.
        try send(
            bench,
            #"""
            {"type":"identify","messageId":"a5","userId":"ada","timestamp":"2020-01-01T00:00:00Z","traits":{"plan":"old"}},
            {"type":"identify","messageId":"a6","userId":"ada","traits":{"age":null}}
            """#)
        let later = try bench.ask("GET", "apps/shop/customers/ada", nil, owner)
        #expect(properties(later).keys.sorted() == ["group", "plan"] && properties(later)["plan"] == "gold")
        // The device's id finds the customer too. A customer without a profile is found by the events.
        let device = try bench.ask("GET", "apps/shop/customers/device-2?id_name=cookie", nil, owner)
        #expect(ids(device).contains(["registered", "bob"]))
        try send(bench, #"{"type":"track","event":"Bought","messageId":"c1","userId":"cleo"}"#)
        let cleo = try bench.ask("GET", "apps/shop/customers/cleo", nil, owner)
        #expect(cleo.json["events"] as? Int == 1 && cleo.json["created_ms"] is NSNull)
        #expect(try bench.ask("GET", "apps/shop/customers/dora", nil, owner).status == 404)
    }

    @Test func brazePurchasesAndSessionsUpdateTheProfile() throws {
        func post(_ events: String) throws {
            let answer = try bench.client().post(
                #"{"device_id":"phone-1","events":[\#(events)]}"#, path: "/api/v3/data",
                headers: ["X-Braze-Api-Key": bench.writeKey])
            #expect(answer?.status == 201 && answer?.body.contains(#""errors":[]"#) == true)
        }
        try post(
            #"""
            {"name":"ss","time":100,"data":{},"user_id":"ada","session_id":"s1"},
            {"name":"p","time":120,"data":{"pid":"sku-1","c":"EUR","p":9.5,"q":2},"user_id":"ada","session_id":"s1"},
            {"name":"se","time":150,"data":{"d":50},"user_id":"ada","session_id":"s1"},
            {"name":"ce","time":130,"data":{"n":"Opened"},"user_id":"ada","session_id":"s1"},
            {"name":"ss","time":160,"data":{},"session_id":"s2"}
            """#)
        // A purchase that arrives later but has an earlier time does not replace the last one.
        try post(#"{"name":"p","time":60,"data":{"pid":"sku-0","c":"EUR","p":1,"q":1},"user_id":"ada"}"#)
        let owner = try bench.token("admin")
        let ada = try bench.ask("GET", "apps/shop/customers/ada", nil, owner)
        #expect(properties(ada).keys.sorted() == ["last_purchase", "last_session_end", "last_session_start"])
        #expect(
            ada.body.contains(
                #"{"data":{"c":"EUR","p":9.5,"pid":"sku-1","q":2},"session_id":"s1","time_ms":120000}"#))
        let phone = try bench.ask("GET", "apps/shop/customers/phone-1?id_name=cookie", nil, owner)
        #expect(properties(phone).keys.sorted() == ["last_session_start"])
    }

    @Test func brazeAttributesUpdateTheProfile() throws {
        let answer = try bench.client().post(
            #"""
            {"device_id":"phone-1","attributes":[{"user_id":"ada","first_name":"Ada","time":5,
            "custom":{"plan":"gold"}},{"email":"x@y.example"}]}
            """#, path: "/api/v3/data", headers: ["X-Braze-Api-Key": bench.writeKey])
        #expect(answer?.status == 201)
        let owner = try bench.token("admin")
        let ada = try bench.ask("GET", "apps/shop/customers/ada", nil, owner)
        #expect(ids(ada) == [["registered", "ada"]])
        #expect(properties(ada) == ["first_name": "Ada", "plan": "gold"])
        let phone = try bench.ask("GET", "apps/shop/customers/phone-1?id_name=cookie", nil, owner)
        #expect(properties(phone) == ["email": "x@y.example"])
    }

    @Test func oneRequestSetsALimitedNumberOfProperties() {
        var profiles = CustomerChanges()
        for number in 0..<(CustomerChanges.mostProperties + 10) {
            profiles.add(user: "u\(number)", device: nil, group: "g", nil, at: 0)
        }
        #expect(profiles.changes.reduce(0) { $0 + $1.properties.count } == CustomerChanges.mostProperties)
    }

    /// The rows are added by SQL, because `CustomerWriter` stores no profile that large.
    @Test func aProfileIsShownUpToOneMiBOfValues() throws {
        try send(bench, #"{"type":"identify","messageId":"1","userId":"ada","traits":{"a":1}}"#)
        let database = try bench.place.connection(to: "events")
        let owner = try bench.token("admin")
        for (name, count, isCut) in [("b", (1 << 20) - 1, false), ("c", 3, true)] {
            try database.run(
                "INSERT INTO customer_property (customer_id, name, value, updated_ms) SELECT id, ?1, ?2, 1 FROM customer",
                .text(name), .text("\"" + String(repeating: "x", count: count - 2) + "\""))
            let shown = try bench.ask("GET", "apps/shop/customers/ada", nil, owner)
            #expect(properties(shown).keys.sorted() == ["a", "b"])
            #expect(shown.json["more_properties"] as? Bool == isCut, "\(name)")
        }
    }

    @Test func traitNamesWithControlCharactersAreNotInTheProfile() throws {
        let event =
            #"{"type":"identify","messageId":"c","userId":"ada","traits":{"a\u0000":1,"b\u007f":2,"c":3,"é":4}}"#
        try send(bench, event)
        let shown = try bench.ask("GET", "apps/shop/customers/ada", nil, bench.token("write"))
        #expect(properties(shown).keys.sorted() == ["c", "é"])
        #expect(shown.json["events"] as? Int == 1)
    }

    @Test func deletingACustomerDeletesOnlyThatCustomersData() throws {
        try send(bench, Self.ada)
        let writer = try bench.token("write")
        _ = try bench.ask("POST", "apps/shop/sessions", #"{"user":"ada"}"#, writer)
        let entries = try bench.apps.auditLog.entries(limit: 100).count
        let done = try bench.ask("DELETE", "apps/shop/customers/ada", nil, writer)
        #expect(done.status == 200)
        #expect(done.body == #"{"events":4,"inbox_messages":0,"profile":true,"samples":0,"sessions":1}"#)
        let database = try bench.place.connection(to: "events")
        #expect(try bench.place.events(["message_id"]) == [["b1"], ["b2"]])
        #expect(
            try database.all("SELECT value FROM customer_identifier ORDER BY value") { $0.text(0) }
                == ["bob", "device-2"])
        // PostgreSQL stores no sum of the bytes of all customers.
        let customers =
            TestEngine.standard == .sqlite ? "sum(customer_bytes)" : "(SELECT sum(bytes) FROM customer)"
        let usage = try database.first(
            """
            SELECT sum(events) = (SELECT count(*) FROM event),
                sum(bytes) = (SELECT sum(length(body)) FROM event),
                \(customers) = (SELECT sum(bytes) FROM customer)
            FROM app_usage WHERE app_id = 'shop'
            """
        ) { [$0.int(0), $0.int(1), $0.int(2)] }
        #expect(usage == [1, 1, 1])
        // The audit log stores the pseudonym, so it does not reveal the deleted user's id.
        let entry = try #require(try bench.apps.auditLog.entries(limit: 1).first)
        #expect(try bench.apps.auditLog.entries(limit: 100).count == entries + 1)
        #expect(entry.action == "customer.delete" && entry.appID == "shop")
        #expect(entry.target.hasPrefix("u-") && entry.target != "u-ada")
        #expect(try bench.ask("DELETE", "apps/shop/customers/ada", nil, writer).status == 404)
        #expect(try bench.ask("GET", "apps/shop/customers/ada", nil, writer).status == 404)
        #expect(try bench.ask("GET", "apps/shop/customers/bob", nil, writer).status == 200)
        // A deleted customer starts again with an empty profile.
        try send(bench, #"{"type":"identify","messageId":"a2","userId":"ada","traits":{"plan":"new"}}"#)
        let again = try bench.ask("GET", "apps/shop/customers/ada", nil, writer)
        #expect(properties(again) == ["plan": "new"] && again.json["events"] as? Int == 1)
    }

    /// Covers every table with user ids. Rows of another user stay.
    @Test func deletingAUserErasesTheirIDFromEveryTable() throws {
        try bench.apps.setEnforcement(.optional, for: "shop")
        let (ada, bob) = ("ada-0b7e", "bob-0b7e")
        let writer = try bench.token("write")
        try bench.apps.projects.putInboxMessage(
            id: "m2", type: "html", content: "{}",
            recipient: CustomerIdentifier(name: "registered", value: ada), in: "shop")
        try bench.apps.projects.putInboxMessage(
            id: "m3", type: "html", content: "{}",
            recipient: CustomerIdentifier(name: "registered", value: bob), in: "shop")
        let session = try bench.ask("POST", "apps/shop/sessions", #"{"user":"\#(ada)"}"#, writer)
        let refresh = try #require(session.json["refresh_token"] as? String)
        let exchanged = try bench.client().post(
            #"{"refresh_token":"\#(refresh)"}"#, path: "/api/refresh_token",
            headers: ["Content-Type": "application/json"])
        let access = try #require(exchanged?.json["accessToken"] as? String)
        _ = try bench.ask("POST", "apps/shop/sessions", #"{"user":"\#(bob)"}"#, writer)
        // A token for Ada with an unknown key, sent by Ada and by Bob.
        let token = try SharedKeys.stranger().sign(claims: [
            "sub": .string(ada), "exp": .integer(bench.now / 1_000 + 600),
        ])
        for (number, user) in [ada, bob].enumerated() {
            let answer = try bench.client().post(
                #"{"batch":[{"type":"track","event":"e","messageId":"\#(number)","userId":"\#(user)","anonymousId":"d-\#(user)"}]}"#,
                headers: ["X-Write-Key": bench.writeKey, "Authorization": "Bearer " + token])
            #expect(answer?.status == 200)
        }
        // Webhooks may echo the request in their response.
        let deliveries = try bench.place.open().openDeliveries()
        let endpoint = DeliveryRecord.alerts(of: "shop")
        for user in [ada, bob] { try deliveries.add(answer("no account \(user)", of: endpoint)) }
        let done = try bench.ask("DELETE", "apps/shop/customers/\(ada)", nil, writer)
        #expect(done.status == 200)
        #expect(done.json["samples"] as? Int == 2 && done.json["sessions"] as? Int == 1)
        #expect(done.json["inbox_messages"] as? Int == 1)
        let files = ["control", "events", "analytics", "tokens", "webhooks"]
        for database in try WholeDatabase.all(of: bench.place, files: files) {
            let name = database.name
            // The audit log retains entries from before the deletion.
            #expect(try database.tables(with: ada).filter { $0 != "audit" } == [], "\(name)")
            if name != "analytics" { #expect(try !database.tables(with: bob).isEmpty, "\(name)") }
        }
        let analytics = try bench.place.connection(to: "analytics")
        let failed = try analytics.all("SELECT \"user\" FROM failed_user_hour") {
            UInt64(bitPattern: $0.int64(0))
        }
        #expect(failed == [DistinctCounter.hash(bob)])
        // Without its session, the access token is still rejected.
        try bench.gateway.refreshApps()
        try bench.apps.setEnforcement(.required, for: "shop")
        try bench.gateway.refreshApps()
        let rejected = try bench.client().post(
            #"{"batch":[{"type":"track","event":"e","messageId":"9","userId":"\#(ada)"}]}"#,
            headers: ["X-Write-Key": bench.writeKey, "Authorization": "Bearer " + access])
        #expect(
            rejected?.status == 401 && rejected?.body.contains("REVOKED") == true, "\(rejected?.body ?? "")")
    }

    private func answer(_ text: String, of endpoint: String) -> DeliveryRecord {
        DeliveryRecord(
            endpointID: endpoint, messageID: "msg_1", kind: .events, events: 1, attempt: 1,
            atMilliseconds: bench.now, durationMilliseconds: 1, status: 500, error: "status", answer: text)
    }

    @Test func deletingAUserKeepsWebhookResponsesOfOtherAppsAndUsers() throws {
        let writer = try bench.token("write")
        // Responses of apps that do not exist are swept.
        _ = try bench.apps.createApp(id: "other")
        try send(bench, #"{"type":"track","event":"x","messageId":"1","userId":"ada"}"#)
        let deliveries = try bench.place.open().openDeliveries()
        let endpoints = ["shop", "other"].map(DeliveryRecord.alerts(of:))
        for endpoint in endpoints {
            for text in ["no account ada", "no account bob"] {
                try deliveries.add(answer(text, of: endpoint))
            }
        }
        func answers(_ endpoint: String) throws -> [String] {
            try bench.place.connection(to: "webhooks").all(
                "SELECT answer FROM delivery WHERE endpoint_id = ?1 ORDER BY seq", .text(endpoint)
            ) { $0.text(0) }
        }
        #expect(try bench.ask("DELETE", "apps/shop/customers/eve", nil, writer).status == 404)
        #expect(try bench.ask("DELETE", "apps/shop/customers/ada", nil, writer).status == 200)
        #expect(try answers(endpoints[0]) == ["", "no account bob"])
        #expect(try bench.ask("DELETE", "apps/shop/customers/bo", nil, writer).status == 404)
        // Bob has no events, as if retention had deleted them.
        #expect(try bench.ask("DELETE", "apps/shop/customers/bob", nil, writer).status == 200)
        #expect(try answers(endpoints[0]) == ["", ""])
        #expect(try answers(endpoints[1]) == ["no account ada", "no account bob"])
    }

    @Test func deletingACustomerDeletesAllOfManyEvents() throws {
        for part in 0..<3 {
            try send(
                bench,
                (0..<400).map {
                    #"{"type":"track","event":"x","messageId":"\#(part)-\#($0)","userId":"ada"}"#
                }.joined(separator: ","))
        }
        let done = try bench.ask("DELETE", "apps/shop/customers/ada", nil, bench.token("write"))
        #expect(done.json["events"] as? Int == 1_200 && done.json["profile"] as? Bool == false)
    }

    @Test(.onSQLite("the pieces of its file; PostgreSQL deletes by other statements"))
    func largeEventsAndPropertiesAreDeletedInSmallPieces() throws {
        let text = String(repeating: "x", count: 500_000)
        for number in 0..<12 {
            try send(
                bench,
                #"{"type":"identify","messageId":"\#(number)","userId":"ada","traits":{"p\#(number)":"\#(text)"}}"#
            )
        }
        let database = try SQLiteConnection(path: bench.place.folder + "/events.sqlite")
        let usage = "SELECT bytes + customer_bytes FROM app_usage WHERE app_id = 'shop'"
        func bytes() throws -> Int64 { try database.first(usage) { $0.int64(0) } ?? 0 }
        var before = try bytes()
        let ada = CustomerIdentifier(name: CustomerIdentifier.hardName, value: "ada")
        var pieces = 0
        let index = try EventIndexReader(
            database, folder: IndexFolder.path(besides: database.path), runs: OpenIndexRuns())
        var scannedThrough: Int64? = 0
        while let from = scannedThrough {
            scannedThrough = try SQLiteCustomerRecords.deletePiece(
                of: ada, in: "shop", after: from, database, index
            ).scannedThrough
            let after = try bytes()
            // The last event of a commit may exceed the bound.
            #expect(before - after <= SQLiteCustomerRecords.bytesPerCommit + 500_100)
            before = after
            pieces += 1
        }
        #expect(pieces >= 2)
        #expect(try database.first("SELECT count(*) FROM event") { $0.int(0) } == 0)
        let done = try bench.ask("DELETE", "apps/shop/customers/ada", nil, bench.token("write"))
        #expect(done.body == #"{"events":0,"inbox_messages":0,"profile":true,"samples":0,"sessions":0}"#)
        #expect(try bytes() == 0)
    }

    /// An id of another name may have the same value as another customer's device.
    @Test func deletingAUserKeepsEventsOfADeviceWithTheSameID() throws {
        try send(bench, Self.ada)
        let key = ["Authorization": "Token " + bench.writeKey]
        for (ids, path) in [
            (#"{"registered":"eve","zzz":"device-2"}"#, "customers"),
            (#"{"zzz":"device-2"}"#, "customers/events"),
        ] {
            let answer = try bench.client().post(
                #"{"customer_ids":\#(ids),"event_type":"e"}"#, path: "/track/v2/projects/shop/" + path,
                headers: key)
            #expect(answer?.status == 200)
        }
        let writer = try bench.token("write")
        #expect(try bench.ask("GET", "apps/shop/customers/eve", nil, writer).json["events"] as? Int == 2)
        let done = try bench.ask("DELETE", "apps/shop/customers/eve", nil, writer)
        #expect(done.json["events"] as? Int == 2)
        let left = try bench.place.events(["message_id"]).map(\.[0])
        #expect(left == ["a1", "a2", "a3", "a4", "b1", "b2"])
    }
}
