import CountersignCore
import CountersignCrypto
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import CountersignTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayAdmin

/// Reading through the admin API: exports, masked users, settings, backups and the OpenAPI document.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct AdminReadTests {
    private let bench: AdminBench

    init() throws { bench = try AdminBench() }

    /// A whole response: its header fields, an empty line and the lines of its body.
    private func download(_ bench: AdminBench, _ path: String) throws -> [String] {
        let answer = try bench.ask("GET", path, nil, bench.token("write"))
        return answer.headers.map { "\($0.key): \($0.value)" } + [""]
            + answer.body.replacing("\r\n", with: "\n").split(
                separator: "\n", omittingEmptySubsequences: false
            ).map(String.init)
    }

    @Test func exportsAreCompleteAndEscapeFormulas() throws {
        let names = [
            "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "plain", #"a "quoted", one"#, "two\nlines",
        ]
        let events = names.enumerated().map { index, name in
            let text = String(decoding: JSONValue.string(name).bytes, as: UTF8.self)
            return #"{"type":"track","event":\#(text),"messageId":"m\#(index)","anonymousId":"a"}"#
        }
        try bench.store(#"{"batch":[\#(events.joined(separator: ","))]}"#)
        let csv = try download(bench, "apps/shop/events/export?format=csv")
        #expect(csv.contains { $0.lowercased() == "content-type: text/csv; charset=utf-8" })
        #expect(csv.contains { $0.contains(#"attachment; filename="shop-events.csv""#) })
        let body = csv.drop { !$0.isEmpty }.dropFirst().joined(separator: "\n")
        #expect(body.hasPrefix("seq,message_id,type,"))
        for cell in [
            "'=cmd|' /C calc'!A0", "'+1+1", "'-2+3", "'@SUM(A1)", "plain", #""a ""quoted"", one""#,
            "\"two\nlines\"",
        ] { #expect(body.contains("," + cell + ","), "\(cell)") }
        let lines = try download(bench, "apps/shop/events/export?format=ndjson").filter { $0.hasPrefix("{") }
        let exported = try lines.map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
        #expect(exported.compactMap { $0?["name"] as? String } == names)
        #expect(
            try bench.ask("GET", "apps/shop/events/export?format=xml", nil, bench.token("write")).status
                == 422)
    }

    @Test func anExportFromAPositionReportsDeletedEvents() throws {
        let events = (1...4).map {
            #"{"type":"track","event":"e\#($0)","messageId":"m\#($0)","anonymousId":"a"}"#
        }
        try bench.store(#"{"batch":[\#(events.joined(separator: ","))]}"#)
        try bench.place.waitForTransactions()
        func export(_ query: String) throws -> (header: String?, lines: [[String: Any]]) {
            let answer = try bench.ask(
                "GET", "apps/shop/events/export?format=ndjson" + query, nil, bench.token("write"))
            let header = answer.headers.first { $0.key.lowercased() == "x-countersign-events-missed" }?.value
            let lines = try answer.body.split(separator: "\n").map {
                try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
            return (header, lines)
        }
        let all = try export("&after=start")
        #expect(all.header == "false" && all.lines.count == 4)
        let positions = all.lines.compactMap { $0["position"] as? String }
        let sequences = all.lines.compactMap { $0["seq"] as? Int64 }
        try #require(positions.count == 4 && sequences.count == 4)
        // Simulates retention that has deleted events up to the second.
        try bench.place.connection(to: "events").execute(
            "INSERT INTO event_floor VALUES ('shop', \(sequences[1]))")
        let gap = try export("&after=\(positions[0])")
        #expect(gap.header == "true")
        let begun = try bench.place.open().log.positions().text(after: 0, in: "shop")
        let fromEmptyLog = try export("&after=\(begun)")
        #expect(fromEmptyLog.header == "true" && fromEmptyLog.lines.first?["events_missed"] as? Bool == true)
        #expect(gap.lines.first?["events_missed"] as? Bool == true)
        #expect(gap.lines.dropFirst().allSatisfy { $0["events_missed"] == nil })
        // The filter excludes the events right after the gap.
        #expect(
            try export("&after=\(positions[0])&name=e4").lines.map { $0["events_missed"] as? Bool } == [true])
        let nothing = try export("&after=\(positions[0])&name=none")
        #expect(nothing.header == "true" && nothing.lines.isEmpty)
        for query in ["&after=\(positions[1])", "&after=start"] {
            let whole = try export(query)
            #expect(
                whole.header == "false" && whole.lines.allSatisfy { $0["events_missed"] == nil }, "\(query)")
        }
        #expect(try export("").header == nil)
        let csv = try bench.ask(
            "GET", "apps/shop/events/export?format=csv&after=\(positions[0])", nil, bench.token("write"))
        #expect(
            csv.headers.contains {
                $0.key.lowercased() == "x-countersign-events-missed" && $0.value == "true"
            })
    }

    @Test func viewersSeeOnlyThePrefixOfAWriteKey() throws {
        let made = try bench.ask("POST", "apps/shop/write-keys", "{}", bench.token("write"))
        let (id, text) = (
            try #require(made.json["id"] as? String), try #require(made.json["write_key"] as? String)
        )
        #expect(made.json["prefix"] as? String == String(text.prefix(7)))
        for (scope, isShown) in [("read", false), ("write", true), ("admin", true)] {
            let listed = try bench.ask("GET", "apps/shop/write-keys", nil, bench.token(scope))
            let items = try #require(listed.json["items"] as? [[String: Any]])
            #expect(
                Set(items.compactMap { $0["prefix"] as? String })
                    == [String(bench.writeKey.prefix(7)), String(text.prefix(7))])
            #expect(
                Set(items.compactMap { $0["write_key"] as? String })
                    == (isShown ? [bench.writeKey, text] : []))
            #expect(listed.body.contains(text) == isShown && listed.body.contains(bench.writeKey) == isShown)
            let one = try bench.ask("GET", "apps/shop/write-keys/\(id)", nil, bench.token(scope))
            #expect(one.json["write_key"] as? String == (isShown ? text : nil))
        }
    }

    @Test func deletingTheLastOrAUsedWriteKeyNeedsConfirmation() throws {
        let writer = try bench.token("write")
        func delete(_ id: String, _ query: String = "") throws -> AdminBench.Answer {
            try bench.ask("DELETE", "apps/shop/write-keys/\(id)" + query, nil, writer)
        }
        let first = try #require(try bench.apps.writeKeys(of: "shop").first).id
        let last = try delete(first)
        #expect(last.status == 409 && last.json["code"] as? String == "confirmation_required")
        #expect(last.body.contains("last write key"))
        // A second key that was never used needs no confirmation.
        let second = try bench.apps.createWriteKey(for: "shop", description: "").entry.id
        #expect(try delete(second).status == 204)
        let third = try bench.apps.createWriteKey(for: "shop", description: "").entry.id
        _ = try bench.client().post(batch(trackEvent("m1")), headers: ["X-Write-Key": bench.writeKey])
        let used = try delete(first)
        #expect(used.status == 409 && used.body.contains("it was used at"))
        #expect(try delete(first, "?confirm=\(third)").status == 409)
        bench.clock.advance(by: 31 * 86_400)
        #expect(try delete(first).status == 204)
        #expect(try delete(third).status == 409)
        #expect(try delete(third, "?confirm=\(third)").status == 204)
        #expect(try delete(third, "?confirm=\(third)").status == 404)
    }

    /// Earlier versions stored only the hash of a write key.
    @Test func aWriteKeyStoredAsAHashIsShownByItsPrefix() throws {
        try bench.place.connection(to: "control").execute("UPDATE write_key SET text = NULL")
        let item = try #require(try bench.items("apps/shop/write-keys", bench.token("admin")).first)
        #expect(item["write_key"] is NSNull)
        #expect(item["prefix"] as? String == String(bench.writeKey.prefix(7)))
        try bench.store(batch(trackEvent("m1")))
    }

    @Test func eventsAreFilteredByTheirVerdict() throws {
        let key = try SharedKeys.stranger()
        _ = try bench.apps.addKey(key.publicKey.pem, to: "shop")
        let token = try key.sign(claims: [
            "sub": "ada", "jti": "of-ada", "exp": .integer(Int64(Date().timeIntervalSince1970 + 600)),
        ])
        for (id, enforcement, token) in [
            ("m1", Enforcement.optional, token), ("m2", .optional, nil), ("m3", .disabled, token),
        ] {
            try bench.apps.setEnforcement(enforcement, for: "shop")
            try bench.gateway.refreshApps()
            var headers = ["X-Write-Key": bench.writeKey]
            headers["Authorization"] = token.map { "Bearer " + $0 }
            let event = #"{"type":"track","event":"e","messageId":"\#(id)","userId":"ada"}"#
            #expect(try bench.client().post(#"{"batch":[\#(event)]}"#, headers: headers)?.status == 200)
        }
        // `m4` has no verdict, like events of earlier versions.
        let (number, day) = TestEngine.standard == .sqlite ? ("seq", "") : ("position", "0, ")
        try bench.place.connection(to: "events").execute(
            """
            INSERT INTO event (\(number), \(day.isEmpty ? "" : "day, ")app_id, message_id, type, timestamp_ms,
                received_ms, body, verdict)
            VALUES (\(Int64.max - 2), \(day)'shop', 'm4', 'track', 1, 1, '{}', NULL),
                (\(Int64.max - 1), \(day)'shop', 'm5', 'track', 1, 1, '{}', 'server')
            """)
        let reader = try bench.token("read")
        let writer = try bench.token("write")
        func found(_ filter: String) throws -> [String] {
            try bench.items("apps/shop/events" + filter, writer).compactMap { $0["message_id"] as? String }
        }
        #expect(try found("") == ["m5", "m4", "m3", "m2", "m1"])
        #expect(try found("?verdict=verified") == ["m1"])
        #expect(try found("?verdict=server") == ["m5"])
        #expect(try found("?verdict=warned") == ["m2"])
        #expect(try found("?verdict=not_judged") == ["m3"])
        #expect(try found("?verdict=unknown") == ["m4"])
        #expect(try found("?verdict=unverified") == ["m4", "m3", "m2"])
        #expect(try bench.ask("GET", "apps/shop/events?verdict=good", nil, reader).status == 422)
        func tokenID(_ token: [String: String]) throws -> String? {
            try bench.items("apps/shop/events?verdict=verified", token).first?["token_id"] as? String
        }
        // The signer chooses token ids, so an id may identify a user.
        #expect(try tokenID(reader) == nil)
        #expect(try tokenID(writer) == "of-ada")
    }

    @Test func storedClaimsAreShownExportedAndSearchable() throws {
        let key = try SharedKeys.stranger()
        _ = try bench.apps.addKey(key.publicKey.pem, to: "shop")
        try bench.apps.setEnforcement(.required, for: "shop")
        let owner = try bench.token("admin")
        let policy = try bench.ask("GET", "apps/shop/policy", nil, owner)
        let base = policy.body.replacing(#""kept_claims":[]"#, with: #""kept_claims":NAMES"#)
        for (names, status) in [
            (#"["a=b"]"#, 422), (#"["a","a"]"#, 422), (#"[""]"#, 422),
            (#"["1","2","3","4","5","6","7","8","9"]"#, 422), (#"["plan"]"#, 200),
        ] {
            let answer = try bench.ask(
                "PUT", "apps/shop/policy", base.replacing("NAMES", with: names),
                owner.merging(["If-Match": policy.headers["etag"] ?? ""]) { one, _ in one })
            #expect(answer.status == status, "\(names): \(answer.body)")
        }
        try bench.gateway.refreshApps()
        for plan in ["pro", "free"] {
            let token = try key.sign(claims: [
                "sub": "ada", "plan": .string(plan),
                "exp": .integer(Int64(Date().timeIntervalSince1970 + 600)),
            ])
            let event = #"{"type":"track","event":"e","messageId":"\#(plan)","userId":"ada"}"#
            let headers = ["X-Write-Key": bench.writeKey, "Authorization": "Bearer " + token]
            #expect(try bench.client().post(#"{"batch":[\#(event)]}"#, headers: headers)?.status == 200)
        }
        let items = try bench.items("apps/shop/events?claim=plan%3Dpro", owner)
        #expect(items.map { $0["message_id"] as? String } == ["pro"])
        #expect(items.first?["claims"] as? [String: String] == ["plan": "pro"])
        #expect(try bench.ask("GET", "apps/shop/events?claim=plan", nil, owner).status == 422)
        let csv = try download(bench, "apps/shop/events/export?format=csv&claim=plan%3Dfree")
        #expect(csv.contains { $0.hasSuffix(",token_id,claims,body") })
        #expect(csv.filter { $0.contains(#""{""plan"":""free""}""#) }.count == 1)
        // The signer chooses the values, so a viewer neither sees nor searches them.
        let viewer = try bench.token("read")
        #expect(try bench.ask("GET", "apps/shop/events?claim=plan%3Dpro", nil, viewer).status == 403)
        #expect(try !bench.ask("GET", "apps/shop/events", nil, viewer).body.contains("claims"))
        for (path, body) in [
            ("consumers", #"{"name":"c","filter":{"claim":"TEXT"}}"#),
            ("webhooks", #"{"url":"https://shop.example/in","claim":"TEXT"}"#),
        ] {
            let bad = try bench.ask("POST", "apps/shop/" + path, body.replacing("TEXT", with: "plan"), owner)
            #expect(bad.status == 422)
            let made = try bench.ask(
                "POST", "apps/shop/" + path, body.replacing("TEXT", with: "plan=pro"), owner)
            #expect(made.status == 201)
            #expect(made.body.contains(#""claim":"plan=pro""#))
            #expect(try !bench.ask("GET", "apps/shop/" + path, nil, viewer).body.contains("plan=pro"))
        }
    }

    /// A message id is unique only for one user, so links to an event use its position.
    @Test func aPositionSelectsOneEventOfOneUser() throws {
        for user in ["ada", "bob"] {
            try bench.store(batch(trackEvent("same", user: user)))
        }
        let owner = try bench.token("admin")
        let items = try bench.items("apps/shop/events?message_id=same", owner)
        #expect(items.map { $0["user_id"] as? String } == ["bob", "ada"])
        let positions = items.compactMap { $0["position"] as? String }
        try bench.place.waitForTransactions()
        for (position, item) in zip(positions, items) {
            let shown = try bench.ask("GET", "apps/shop/events/\(position)", nil, owner)
            #expect(shown.status == 200)
            #expect(NSDictionary(dictionary: shown.json) == NSDictionary(dictionary: item))
        }
        #expect(try bench.ask("DELETE", "apps/shop/customers/bob", nil, owner).status == 200)
        let gone = try bench.ask("GET", "apps/shop/events/\(positions[0])", nil, owner)
        #expect(gone.status == 404 && gone.body.contains("deleted"))
        #expect(try bench.ask("GET", "apps/shop/events/\(positions[1])", nil, owner).status == 200)
        let other = try bench.ask("GET", "apps/shop/events/same", nil, owner)
        #expect(other.status == 422 && other.json["code"] as? String == "position_malformed")
        _ = try bench.apps.createApp(id: "other")
        let foreign = try bench.ask("GET", "apps/other/events/\(positions[1])", nil, owner)
        #expect(foreign.json["code"] as? String == "position_of_another_app")
    }

    /// With an id from the gateway, an id from the client, and UUIDs from the client that contain a wrong time.
    @Test(arguments: [
        nil, "trail-7", "01890a5d-ac96-774b-bcce-b302099a8057", "7D444840-9DC0-11D1-B245-5FFDCE74FAD2",
    ])
    func aRequestIdFindsTheSampleAndTheEvents(given: String?) throws {
        _ = try bench.apps.addKey(try SigningKey.generate(.es256).publicKey.pem, to: "shop")
        try bench.apps.setEnforcement(.optional, for: "shop")
        try bench.gateway.refreshApps()
        var ids: [String] = []
        for (number, id) in ["before", given, "after"].enumerated() {
            var headers = ["X-Write-Key": bench.writeKey]
            headers["X-Request-Id"] = id
            let events = ["a", "b"].map { trackEvent("m\(number)\($0)", user: "ada") }.joined(separator: ",")
            let stored = try bench.client().post(#"{"batch":[\#(events)]}"#, headers: headers)
            #expect(stored?.status == 200)
            ids.append(try #require(stored?.headers["x-request-id"]))
        }
        let owner = try bench.token("admin")
        func found(_ path: String) throws -> [[String: Any]] {
            let answer = try bench.ask("GET", path + "?request_id=\(ids[1])", nil, owner)
            #expect(answer.status == 200 && answer.json["next"] is NSNull)
            return try #require(answer.json["items"] as? [[String: Any]])
        }
        #expect(try found("apps/shop/events").map { $0["message_id"] as? String } == ["m1b", "m1a"])
        #expect(try found("apps/shop/samples").map { $0["request_id"] as? String } == [ids[1]])
    }

    @Test func theAuditLogIsExportedWhole() throws {
        for number in 0..<600 { try bench.apps.renameApp("shop", to: "Shop \(number)") }
        let entries = try bench.apps.auditLog.entries(limit: 1_000)
        #expect(entries.count > 600)
        let lines = try download(bench, "audit/export").filter { $0.hasPrefix("{") }
        // An entry's hash covers all its fields.
        #expect(
            zip(lines.suffix(entries.count), entries).allSatisfy { line, entry in
                line.contains("\"hash\":\"\(Base64URL.encode(entry.hash))\",")
            } && lines.count >= entries.count)
        let rows = try download(bench, "audit/export?format=csv")
        #expect(rows.count { $0.hasPrefix("seq,at_ms,actor,") } == 1)
        #expect(rows.count { $0.contains(",app.rename,shop,") } == 600)
    }

    @Test func aViewerSeesNoTokenInASample() throws {
        let key = try SharedKeys.stranger()
        _ = try bench.apps.addKey(key.publicKey.pem, to: "shop")
        try bench.apps.setEnforcement(.required, for: "shop")
        try bench.gateway.refreshApps()
        let user = "alice@customers.example"
        let token = try key.sign(claims: [
            "sub": .string(user), "exp": .integer(Int64(bench.clock.now.timeIntervalSince1970) - 600),
            "iss": "shop-backend", "email": "alice@home.example", "profile": ["name": "alice"],
        ])
        let rejected = try bench.client().post(
            batch(trackEvent("m1", user: user)),
            headers: ["X-Write-Key": bench.writeKey, "Authorization": "Bearer \(token)"])
        #expect(rejected?.status == 401)
        let viewer = try bench.token("read")
        let list = try bench.ask("GET", "apps/shop/samples", nil, viewer)
        let sample = try #require((list.json["items"] as? [[String: Any]])?.first)
        #expect(
            try sample["user"] as? String
                == Pseudonyms(key: bench.apps.pseudonymKey(), appID: "shop").user(user))
        let path = "apps/shop/samples/\(sample["id"] as? String ?? "")"
        let masked = try bench.ask("GET", path, nil, viewer)
        _ = try bench.apps.createApp(id: "other")
        #expect(try bench.ask("GET", path.replacing("shop", with: "other"), nil, viewer).status == 404)
        #expect(masked.status == 200 && !list.body.contains("alice") && !masked.body.contains("alice"))
        #expect(masked.json["claims"] is NSNull && masked.json["header"] is NSNull)
        #expect(masked.json["token_without_signature"] is NSNull)
        let shown = try bench.ask("GET", path, nil, bench.token("write"))
        #expect(shown.json["user"] as? String == user)
        #expect(shown.body.contains("alice@home.example"))
        #expect((shown.json["token_without_signature"] as? String)?.hasSuffix(".") == true)
    }

    @Test func countsAreFilteredByModeAndCode() throws {
        _ = try bench.apps.addKey(try SigningKey.generate(.es256).publicKey.pem, to: "shop")
        for (mode, tokens) in [(Enforcement.optional, ["", "a.b.c"]), (.required, [""])] {
            try bench.apps.setEnforcement(mode, for: "shop")
            try bench.gateway.refreshApps()
            for token in tokens {
                var headers = ["X-Write-Key": bench.writeKey]
                if !token.isEmpty { headers["Authorization"] = "Bearer \(token)" }
                let answer = try bench.client().post(
                    batch(trackEvent("m-\(mode)-\(token)")), headers: headers)
                #expect(answer?.status == (mode == .required ? 401 : 200))
            }
        }
        let viewer = try bench.token("read")
        func top(_ query: String) throws -> [String: Int] {
            let items = try bench.items("apps/shop/analytics/top?\(query)", viewer)
            return items.reduce(into: [:]) { $0[$1["value"] as? String ?? ""] = $1["failures"] as? Int }
        }
        #expect(try top("by=mode") == ["optional": 2, "required": 1])
        #expect(
            try top("by=mode&code=\(AuthErrorCode.missingToken.rawValue)") == ["optional": 1, "required": 1])
        #expect(try top("by=endpoint&mode=optional") == ["/v1/batch": 2])
        let totals = try bench.ask("GET", "apps/shop/analytics?mode=required", nil, viewer).json["totals"]
        #expect((totals as? [String: Any])?["rejected"] as? Int == 1)
        #expect((totals as? [String: Any])?["warned"] as? Int == 0)
        #expect(try bench.ask("GET", "apps/shop/analytics?mode=strict", nil, viewer).status == 422)
    }

    @Test func changesAreMarkedInAChartDespiteThousandsOfLaterEntries() throws {
        try bench.apps.setEnforcement(.required, for: "shop")
        #expect(try bench.apps.returnToOptional("shop", rejectedPercent: 7, alert: [:], at: bench.now))
        try bench.apps.transaction { directory in
            for number in 0..<2_001 { try directory.auditLog.note("app.test", "\(number)", app: "shop") }
        }
        bench.clock.advance(by: 60)
        let counts = try bench.ask("GET", "apps/shop/analytics", nil, bench.token("read")).json
        let markers = try #require(counts["markers"] as? [[String: Any]])
        #expect(markers.map { $0["kind"] as? String } == ["enforcement", "returned"])
        #expect(
            markers.map { $0["text"] as? String }
                == ["Enforcement set to required", "Reverted to optional automatically"])
        let overview = try bench.ask("GET", "overview", nil, bench.token("read")).json
        let warnings = try #require(overview["warnings"] as? [[String: Any]])
        #expect(warnings.map { $0["code"] as? String } == ["no_key", "returned"])
        #expect(warnings.allSatisfy { $0["app"] as? String == "shop" })
    }

    @Test func theErrorCodesEndpointListsEveryCode() throws {
        let items = try bench.items("error-codes", bench.token("read"))
        #expect(items.map { $0["code"] as? Int } == AuthErrorCode.all.map(\.rawValue))
        for (item, code) in zip(items, AuthErrorCode.all) {
            #expect(item["reason"] as? String == code.reason)
            #expect(item["title"] as? String == code.summary)
            #expect(item["fix"] as? String == code.fix)
            #expect(item["causes"] as? [String] == code.likelyCauses)
            let page = "docs/reference/error-codes.md#\(code.rawValue)-"
            #expect((item["docs"] as? String)?.hasPrefix(page) == true)
        }
    }

    @Test func anAppIsListedWithTheFeaturesThatItUses() throws {
        _ = try bench.apps.createApp(id: "idle")
        for id in ["backend", "devices", "vendor", "people", "provider"] {
            _ = try bench.apps.createApp(id: id)
        }
        _ = try bench.apps.clients.create(of: "backend", name: "")
        var rules = TokenRules()
        rules.allowsRegistration = true
        try bench.apps.setTokenRules(rules, for: "devices")
        var project = ProjectSettings.standard(for: "vendor")
        project.token = "vendor-token"
        try bench.apps.setProject(project, for: "vendor")
        try bench.apps.setKeySources(
            KeySources([.init(url: "https://keys.example/jwks", allowsPrivateAddresses: false)]),
            of: "provider")
        let people = try bench.apps.createWriteKey(for: "people", description: "").text
        try bench.gateway.refreshApps()
        let identify = #"{"type":"identify","messageId":"1","anonymousId":"a","traits":{"plan":"pro"}}"#
        _ = try bench.client().post(batch(identify), headers: ["X-Write-Key": people])
        let features = try bench.items("apps", bench.token("read")).map { item in
            "\(item["id"] ?? ""): \((item["features"] as? [String] ?? []).joined(separator: " "))"
        }
        #expect(
            features == [
                "backend: token_service", "devices: token_service", "idle: ", "people: customers",
                "provider: key_sources", "shop: ", "vendor: bloomreach",
            ])
    }

    @Test func eachAppIsListedWithItsOwnCounts() throws {
        func minute() -> Int64 { Int64(Date().timeIntervalSince1970) / 60 * 60_000 }
        let first = minute()
        let kiosk = try bench.apps.createApp(id: "kiosk")
        _ = try bench.apps.createApp(id: "idle")
        for (id, mode) in [("shop", Enforcement.optional), ("kiosk", .required)] {
            _ = try bench.apps.addKey(try SigningKey.generate(.es256).publicKey.pem, to: id)
            try bench.apps.setEnforcement(mode, for: id)
        }
        try bench.gateway.refreshApps()
        for (key, count) in [(bench.writeKey, 3), (kiosk.writeKey, 2)] {
            for number in 0..<count {
                let event = trackEvent("m\(number)", user: number == 1 ? nil : "user-1")
                _ = try bench.client().post(batch(event), headers: ["X-Write-Key": key])
            }
        }
        let viewer = try bench.token("read")
        let items = try bench.items("apps", viewer)
        let wanted = [("idle", [0, 0, 0]), ("kiosk", [2, 1, 0]), ("shop", [3, 0, 2])]
        #expect(items.map { $0["id"] as? String } == wanted.map(\.0))
        let minutes = first...minute()
        for (item, (id, counts)) in zip(items, wanted) {
            let day = item["last_24h"] as? [String: Any] ?? [:]
            #expect(["requests", "rejected", "warned"].map { day[$0] as? Int } == counts, "\(id)")
            #expect(day["verified"] as? Int == counts[1] + counts[2], "\(id)")
            let hours = day["hours"] as? [[String: Int]] ?? []
            #expect(hours.compactMap { $0["requests"] }.reduce(0, +) == counts[0], "\(id)")
            #expect(hours.compactMap { $0["failures"] }.reduce(0, +) == counts[1] + counts[2], "\(id)")
            let last = (item["last_request_ms"] as? NSNumber)?.int64Value
            #expect(last.map(minutes.contains) == (counts[0] > 0 ? true : nil), "\(id)")
            let alone = try bench.ask("GET", "apps/\(id)", nil, viewer).json as NSDictionary
            #expect(alone == item as NSDictionary)
        }
    }

    @Test(.onSQLite("backups copy its folder; PostgreSQL has its own tools"))
    func settingsAreShownAndBackupsAreVerifiedByName() throws {
        let bench = try AdminBench {
            $0.settings = [GatewaySetting(name: "port", value: "8787", origin: "default", help: "a port")]
        }
        let owner = try bench.token("admin")
        let settings = try bench.ask("GET", "settings", nil, owner).json["items"] as? [[String: String]]
        #expect(settings == [["name": "port", "value": "8787", "origin": "default", "help": "a port"]])
        let made = try bench.ask("POST", "backups", "{}", owner)
        let name = try #require(made.json["name"] as? String)
        #expect(try bench.ask("POST", "backups/\(name)/verify", "{}", owner).json["ok"] as? Bool == true)
        let damaged = bench.place.folder + "/backups/\(name)/control.sqlite"
        try Data("nothing".utf8).write(to: URL(fileURLWithPath: damaged))
        let verdict = try bench.ask("POST", "backups/\(name)/verify", "{}", owner).json
        #expect(verdict["ok"] as? Bool == false)
        #expect((verdict["problem"] as? String)?.contains("control.sqlite") == true)
        for hostile in ["none", "..", "%2e%2e%2fbackups%2f\(name)", "\(name)%2f"] {
            #expect(try bench.ask("POST", "backups/\(hostile)/verify", "{}", owner).status == 404)
        }
    }

    @Test func theLastUseOfAWriteKeySurvivesARestart() throws {
        let owner = try bench.token("admin")
        func used(_ client: any TestClient) throws -> Int64? {
            let items = try bench.ask("GET", "apps/shop/write-keys", nil, owner, by: client).json["items"]
            return ((items as? [[String: Any]])?.first?["last_used_ms"] as? NSNumber)?.int64Value
        }
        #expect(try used(bench.client()) == nil)
        _ = try bench.client().post(batch(trackEvent("m1")), headers: ["X-Write-Key": bench.writeKey])
        #expect(try used(bench.client()) == bench.now)
        bench.gateway.stop()
        let again = try AdminBench.start(bench.place, bench.clock)
        defer { again.stop() }
        #expect(try used(TestTransport.standard.client(of: again)) == bench.now)
    }

    @Test func aLastUseRecordedWithAFastClockIsReplaced() throws {
        let (token, text) = try bench.apps.apiTokens.create(name: "ci", scopes: ["read"])
        let hash = SHA256.digest(bench.writeKey)
        for time in [bench.now + 365 * 86_400_000, bench.now] {
            try bench.apps.noteWriteKeyUses([hash: time])
            #expect(try bench.apps.writeKeys(of: "shop").map(\.usedMilliseconds) == [time])
            _ = try bench.apps.apiTokens.token(text, at: time)
            let used = try bench.apps.apiTokens.all().first { $0.id == token.id }?.usedMilliseconds
            #expect(used == time)
        }
        // A use that another gateway records late does not replace a newer one.
        try bench.apps.noteWriteKeyUses([hash: bench.now - 1_000])
        #expect(try bench.apps.writeKeys(of: "shop").map(\.usedMilliseconds) == [bench.now])
    }

    // MARK: OpenAPI document

    @Test func theOpenAPIDocumentHasEveryRouteAndItsReferencesResolve() throws {
        let routes = [
            SignInRoutes(isSecure: false, passwordCost: .password, cluster: nil).all, EnforcementRoutes().all,
            ProjectRoutes().all, PeopleRoutes(passwordCost: .password).all,
        ].joined().map(\.operation)
        let all = routes + [AdminDocument.route(describing: routes).operation]
        guard case .object(let document) = AdminDocument(routes: all).value,
            case .object(let paths)? = document["paths"],
            case .object(let components)? = document["components"],
            case .object(let schemas)? = components["schemas"]
        else {
            Issue.record("no document")
            return
        }
        #expect(document["openapi"] == "3.1.0")
        var identifiers: Set<JSONValue> = []
        for route in all {
            guard case .object(let item)? = paths[route.path],
                case .object(let operation)? = item[route.method.lowercased()],
                case .object(let responses)? = operation["responses"]
            else {
                Issue.record("\(route.method) \(route.path) is not described")
                continue
            }
            #expect(identifiers.insert(operation["operationId"] ?? .null).inserted, "\(route.path)")
            #expect(operation["summary"] == .string(route.summary))
            #expect(responses.keys.contains { $0.hasPrefix("2") })
            guard case .object(let members)? = route.body else { continue }
            guard case .object(let body)? = operation["requestBody"],
                case .object(let content)? = body["content"],
                case .object(let media)? = content["application/json"],
                case .object(let schema)? = media["schema"],
                case .object(let properties)? = schema["properties"]
            else {
                Issue.record("\(route.method) \(route.path) has no body")
                continue
            }
            #expect(Set(properties.keys) == Set(members.map(\.name)))
        }
        #expect(paths.count == Set(all.map(\.path)).count)
        let text = String(decoding: AdminDocument(routes: all).value.bytes, as: UTF8.self)
        for reference in text.components(separatedBy: ##""#/components/schemas/"##).dropFirst() {
            let name = String(reference.prefix { $0 != "\"" })
            #expect(schemas[name] != nil, "there is no schema \(name)")
        }
    }

    @Test func invalidMembersAreRejectedWithTheirPointer() throws {
        let members: [JSONMember] = [
            .must("name", .text(longest: 3)), .may("count", .integer(1...5)),
            .may("inner", .object([.must("on", .bool)])), .ignored("made_ms", .milliseconds),
        ]
        func problem(_ text: String) -> String? {
            do {
                _ = try AdminBody(Array(text.utf8), .object(members))
                return nil
            } catch {
                guard let problem = error as? AdminProblem else { return "\(error)" }
                return problem.error?.place ?? problem.code
            }
        }
        #expect(problem(#"{"name":"abc","count":5,"inner":{"on":true},"made_ms":"anything"}"#) == nil)
        #expect(problem(#"{"name":"abc","count":null}"#) == nil)
        for (text, pointer) in [
            (#"{"count":1}"#, "/name"), (#"{"name":null}"#, "/name"), (#"{"name":"abcd"}"#, "/name"),
            (#"{"name":"ää"}"#, "/name"), (#"{"name":"a","count":6}"#, "/count"),
            (#"{"name":"a","count":1.0}"#, "/count"), (#"{"name":"a","inner":{}}"#, "/inner/on"),
            (#"{"name":"a","inner":{"on":1}}"#, "/inner/on"), (#"{"name":"a","more":1}"#, "/more"),
        ] { #expect(problem(text) == pointer, "\(text)") }
    }

    /// Covers the GET routes without an id. An unavailable feature must respond as documented too.
    @Test func statusesOfGETRoutesAreDocumented() throws {
        let document = try bench.ask("GET", "openapi.json", nil, bench.token("admin")).json
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        let readable = paths.filter { !$0.key.contains("{") && $0.value["get"] != nil }
        #expect(readable.count > 10)
        for (path, item) in readable {
            let responses = try #require((item["get"] as? [String: Any])?["responses"] as? [String: Any])
            let status = try bench.ask("GET", String(path.dropFirst()), nil, bench.token("admin")).status
            #expect([200, 404, 422].contains(status), "GET \(path): \(status)")
            #expect(responses[String(status)] != nil, "GET \(path): \(status)")
        }
    }
}
