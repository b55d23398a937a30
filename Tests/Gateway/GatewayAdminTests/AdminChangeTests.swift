import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import CountersignSQLite
import GatewayIngest
import GatewayTestSupport
import Testing

/// Conditional changes, pagination during concurrent changes, and the audit log.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct AdminChangeTests {
    private let bench: AdminBench

    init() throws { bench = try AdminBench() }

    /// Changes of a resource: method, path and body.
    private static let changes: [(String, String, String)] = [
        ("PATCH", "apps/shop", #"{"name":"Other"}"#),
        ("PATCH", "apps/shop/keys/KEY", #"{"description":"other"}"#),
        ("PUT", "apps/shop/enforcement", #"{"state":"optional"}"#),
        ("PUT", "apps/shop/policy", #"{"audience":"other"}"#),
        ("PUT", "apps/shop/webhook", #"{"url":"https://alerts.example/hook"}"#),
        ("PUT", "apps/shop/project", #"{"token":"other-token","customer_tokens":"allowed"}"#),
        (
            "PUT", "apps/shop/token-rules",
            #"{"registration":"open","access_seconds":60,"refresh_seconds":600,"reuse_seconds":0}"#
        ),
        ("PUT", "apps/shop/key-source", #"{"url":"https://keys.example/jwks.json","allow_private":true}"#),
        ("PUT", "apps/shop/project/items/in-app-message/m", #"{"trigger":{"event_type":"open"}}"#),
        ("PUT", "apps/shop/project/items/inbox-message/i", #"{"type":"push","content":{}}"#),
        ("PATCH", "users/ada", #"{"role":"viewer"}"#),
    ]

    @Test(arguments: changes)
    func aChangeNeedsAMatchingETag(method: String, template: String, body: String) throws {
        let key = try bench.apps.addKey(SigningKey.generate(.es256).publicKey.pem, to: "shop")
        try bench.apps.admins.createUser(name: "ada", role: .operator, password: AdminBench.passwordHash)
        try bench.apps.admins.createUser(name: "root", role: .owner, password: AdminBench.passwordHash)
        try bench.apps.projects.put(
            .inAppMessage, json: #"{"id":"m","trigger":{"event_type":"view"}}"#, in: "shop")
        _ = try bench.apps.projects.putInboxMessage(
            json: #"{"id":"i","type":"html","content":{}}"#, in: "shop")
        let owner = try bench.token("admin")
        let path = template.replacing("KEY", with: key.id)
        func change(_ tag: String?) throws -> AdminBench.Answer {
            try bench.ask(method, path, body, owner.merging(tag.map { ["If-Match": $0] } ?? [:]) { $1 })
        }
        let entries = try bench.apps.auditLog.entries(limit: 500).count
        let tag = try #require(try bench.ask("GET", path, nil, owner).headers["etag"])
        #expect(try change(nil).status == 428)
        #expect(try change(#""stale""#).status == 412)
        #expect(try bench.ask("GET", path, nil, owner).headers["etag"] == tag)
        #expect(try bench.apps.auditLog.entries(limit: 500).count == entries)
        let changed = try change(tag)
        #expect(changed.status == 200, "\(changed.body)")
        let next = try #require(changed.headers["etag"])
        #expect(next != tag)
        #expect(try bench.ask("GET", path, nil, owner).headers["etag"] == next)
        #expect(try change(tag).status == 412)
        #expect(try change(#""a", "# + next).status == 200)
        // The audit entry of the first change has the old and the new value.
        let entry = try #require(try bench.apps.auditLog.entries(limit: 500).dropLast(entries).last)
        #expect(entry.actor.hasPrefix("token:test#") && entry.role == "owner")
        #expect(entry.after != nil && entry.before != entry.after)
    }

    @Test func aDeletionHonoursIfMatchButDoesNotRequireIt() throws {
        let owner = try bench.token("admin")
        _ = try bench.apps.projects.putInboxMessage(
            json: #"{"id":"i","type":"html","content":{}}"#, in: "shop")
        let path = "apps/shop/project/items/inbox-message/i"
        let tag = try #require(try bench.ask("GET", path, nil, owner).headers["etag"])
        let stale = owner.merging(["If-Match": #""stale""#]) { $1 }
        #expect(try bench.ask("DELETE", path, nil, stale).status == 412)
        #expect(try bench.ask("DELETE", path, nil, owner.merging(["If-Match": tag]) { $1 }).status == 204)
        #expect(try bench.ask("DELETE", path, nil, owner).status == 404)
        // A new item is created without an ETag. `If-Match: *` fails for it.
        let item = "apps/shop/project/items/consent-category/c"
        let any = owner.merging(["If-Match": "*"]) { $1 }
        #expect(try bench.ask("PUT", item, "{}", any).status == 412)
        #expect(try bench.ask("PUT", item, "{}", owner).status == 200)
        #expect(try bench.ask("PUT", item, "{}", owner).status == 428)
        #expect(try bench.ask("PUT", item, #"{"id":"d"}"#, any).status == 422)
    }

    @Test(arguments: [
        ("webhook", "webhook", #"{"url":"https://alerts.example/hook"}"#),
        ("key-source", "key-source", #"{"url":"https://keys.example/jwks.json"}"#),
        ("project", "project", #"{"token":"other-token","customer_tokens":"allowed"}"#),
        ("project/items/{kind}/{id}", "project/items/consent-category/c", "{}"),
        ("project/items/{kind}/{id}", "project/items/inbox-message/i", #"{"type":"push","content":{}}"#),
    ])
    func theOpenAPIDocumentMarksRoutesThatNeedAnETag(template: String, path: String, body: String) throws {
        let owner = try bench.token("admin")
        let paths = try bench.ask("GET", "openapi.json", nil, owner).json["paths"] as? [String: Any]
        let operations = paths?["/apps/{app}/" + template] as? [String: [String: Any]]
        let parameters = operations?["put"]?["parameters"] as? [[String: Any]]
        let tag = try #require(parameters?.first { $0["name"] as? String == "If-Match" })
        let status = try bench.ask("PUT", "apps/shop/" + path, body, owner).status
        #expect(tag["required"] as? Bool == (status == 428))
    }

    // MARK: Pages

    /// Reads a list two items at a time. `meanwhile` adds items after each of the first four pages.
    private func pages(
        _ bench: AdminBench, _ path: String, _ key: String, meanwhile: (Int) throws -> Void
    ) throws -> [String] {
        let owner = try bench.token("admin")
        var (found, cursor, number): ([String], String, Int) = ([], "", 0)
        repeat {
            let answer = try bench.ask("GET", "\(path)?limit=2&cursor=\(cursor)", nil, owner)
            #expect(answer.status == 200, "\(answer.body)")
            let items = answer.json["items"] as? [[String: Any]] ?? []
            found += items.map { "\($0[key] ?? "")" }
            cursor = answer.json["next"] as? String ?? ""
            #expect(items.count == 2 || cursor.isEmpty)
            number += 1
            if number < 5 { try meanwhile(number) }
        } while !cursor.isEmpty && number < 100
        return found
    }

    @Test(arguments: [
        "apps", "users", "tokens", "write-keys", "clients", "sessions", "items", "inbox", "audit",
    ])
    func pagesListEveryEntryOnceWhileEntriesAreAdded(list: String) throws {
        let families = try TokenFamilyDirectory(bench.place)
        var all: Set<String> = []
        func add(_ name: String) throws {
            switch list {
            case "apps": all.insert(try bench.apps.createApp(id: name).app.id)
            case "users":
                try bench.apps.admins.createUser(name: name, role: .viewer, password: AdminBench.passwordHash)
                all.insert(name)
            case "tokens": all.insert(try bench.apps.apiTokens.create(name: name, scopes: ["read"]).entry.id)
            case "write-keys":
                all.insert(try bench.apps.createWriteKey(for: "shop", description: "").entry.id)
            case "clients": all.insert(try bench.apps.clients.create(of: "shop", name: name).client.id)
            case "sessions": all.insert(try families.open(for: name, of: "shop").family.id)
            case "items":
                all.insert(
                    try bench.apps.projects.put(.consentCategory, json: #"{"id":"\#(name)"}"#, in: "shop"))
            case "inbox":
                all.insert(
                    try bench.apps.projects.putInboxMessage(
                        json: #"{"id":"\#(name)","type":"html","content":{}}"#, in: "shop"))
            default:
                try bench.apps.auditLog.note("app.test", name)
                all.insert(name)
            }
        }
        // Several in one millisecond, so that the order depends on the id.
        for number in 0..<7 { try add("m\(number)") }
        let begun = all
        let (path, key) =
            switch list {
            case "apps", "tokens": (list, "id")
            case "users": (list, "name")
            case "clients": ("apps/shop/clients", "client_id")
            case "items": ("apps/shop/project/items/consent-category", "id")
            case "inbox": ("apps/shop/project/items/inbox-message", "id")
            case "audit": (list, "target")
            default: ("apps/shop/\(list)", "id")
            }
        let found = try pages(bench, path, key) { number in
            try add("a\(number)")
            try add("z\(number)")
        }
        #expect(begun.isSubset(of: found))
        #expect(Set(found).intersection(all).count == found.filter(all.contains).count)
        let owner = try bench.token("admin")
        try expectNoHostileCursor(path, bench, owner)
    }

    @Test(arguments: ["apps/shop/events", "apps/shop/samples"])
    func listsOfEventsAndSamplesRejectHostileCursors(path: String) throws {
        let bench = try AdminBench()
        try expectNoHostileCursor(path, bench, try bench.token("admin"))
    }

    private func expectNoHostileCursor(
        _ path: String, _ bench: AdminBench, _ owner: [String: String]
    ) throws {
        for hostile in [
            "x", "1.5", "%00", "99999999999999999999", "'%20OR%201=1", "01", "-", "_", "-1", "\(Int64.min)",
        ] {
            let answer = try bench.ask("GET", "\(path)?cursor=\(hostile)", nil, owner)
            #expect(answer.status == 422, "\(path) \(hostile)")
        }
        #expect(try bench.ask("GET", "\(path)?cursor=\(Int64.max)", nil, owner).status == 200)
    }

    // MARK: The audit log

    @Test(arguments: [
        ("UPDATE audit SET after = '\"mallory\"' WHERE seq = 3", 3), ("DELETE FROM audit WHERE seq = 2", 2),
        ("UPDATE audit SET actor = 'nobody' WHERE seq = 1", 1),
        ("DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)", 6),
        (
            "UPDATE audit SET seq = 99 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 99",
            2
        ),
    ])
    func tamperedEntriesAreFound(sql: String, place: Int) throws {
        let headers = try bench.token("read")
        for number in 1...4 { try bench.apps.renameApp("shop", to: "Name \(number)") }
        let whole = try bench.ask("GET", "audit/verify", nil, headers).json
        #expect(whole["ok"] as? Bool == true && whole["entries"] as? Int == 6)
        try bench.place.connection(to: "control").execute(sql)
        let broken = try bench.ask("GET", "audit/verify", nil, headers).json
        #expect(broken["ok"] as? Bool == false)
        #expect(broken["broken_at"] as? Int == place)
    }

    /// To alter an entry undetected, all later entries and the stored hash of the last must be altered too.
    @Test(arguments: [(3, 4), (6, 6)])
    func anEntryWithANewHashBreaksTheChainBehindIt(seq: Int64, place: Int) throws {
        let headers = try bench.token("read")
        for number in 1...4 { try bench.apps.renameApp("shop", to: "Name \(number)") }
        var entry = try #require(try bench.apps.auditLog.entries(limit: 10).first { $0.seq == seq })
        entry.actor = "nobody"
        try bench.place.connection(to: "control").run(
            "UPDATE audit SET actor = ?1, hash = ?2 WHERE seq = ?3", .text(entry.actor),
            .blob(entry.computedHash), .integer(seq))
        let broken = try bench.ask("GET", "audit/verify", nil, headers).json
        #expect(broken["ok"] as? Bool == false && broken["broken_at"] as? Int == place)
    }

    @Test func noEntryHoldsASecret() throws {
        let owner = try bench.token("admin")
        var secrets: [String] = []
        func make(_ path: String, _ body: String, _ member: String) throws {
            let answer = try bench.ask("POST", path, body, owner)
            #expect(answer.status == 201, "\(answer.body)")
            secrets.append(try #require(answer.json[member] as? String))
        }
        try make("apps/shop/write-keys", "{}", "write_key")
        try make("apps/shop/clients", #"{"name":"backend"}"#, "client_secret")
        try make("apps/shop/sessions", #"{"user":"user-1"}"#, "refresh_token")
        try make("apps/shop/project/private-keys", #"{"id":"k1"}"#, "secret")
        try make("tokens", #"{"name":"ci","scopes":["read"]}"#, "token")
        let any = owner.merging(["If-Match": "*"]) { $1 }
        let webhook = try bench.ask("PUT", "apps/shop/webhook", #"{"url":"https://a.example"}"#, any)
        secrets.append(try #require(webhook.json["secret"] as? String))
        let project = try bench.ask(
            "PUT", "apps/shop/project",
            #"{"token":"shop","customer_tokens":"off","webhook":{"url":"https://a.example"}}"#, any)
        secrets.append(try #require(project.json["webhook_secret"] as? String))
        _ = try bench.ask(
            "POST", "users", #"{"name":"eve","role":"viewer","password":"\#(AdminBench.password)"}"#, owner)
        secrets.append(AdminBench.password)
        let log = try bench.ask("GET", "audit?limit=500", nil, owner)
        let actions = (log.json["items"] as? [[String: Any]] ?? []).compactMap { $0["action"] as? String }
        for action in [
            "write_key.create", "client.create", "session.open", "project.private_key.add", "token.create",
            "webhook.set", "project.set", "user.create",
        ] { #expect(actions.contains(action), "\(action)") }
        for secret in secrets { #expect(!log.body.contains(secret)) }
    }
}
