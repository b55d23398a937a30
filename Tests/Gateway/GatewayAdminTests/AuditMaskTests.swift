import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

@testable import GatewayAdmin

/// The audit log as viewers get it, without user ids. Its values never contain secrets.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct AuditMaskTests {
    private static let user = "Alice-zbevnica"

    private func shown(
        _ action: String, _ target: String, before: String? = nil, after: String? = nil
    ) -> String {
        let entry = AuditEntry(
            seq: 1, atMilliseconds: 1, actor: "olga", role: "operator", action: action, target: target,
            appID: "shop", before: before, after: after, previousHash: [1], hash: [2])
        let mask = UserMask(key: [UInt8](repeating: 7, count: 32))
        let shown = mask.audit(entry)
        #expect(shown.hash.isEmpty && shown.previousHash.isEmpty)
        #expect(UserMask.none.audit(entry).target == target)
        return [shown.target, shown.before ?? "-", shown.after ?? "-"].joined(separator: " ")
    }

    @Test(
        arguments: [
            ("item.unmask", "inbox-message/hello-Alice-zbevnica", nil, nil),
            (
                "project.item.put", "inbox_message/hello-Alice-zbevnica", nil,
                #"{"id":"hello-Alice-zbevnica","type":"html","content":{"html":"Alice"},"recipient":{"own_id":"Alice-zbevnica"}}"#
            ),
            (
                "project.item.delete", "inbox_message/for-Alice-zbevnica",
                #"{"id":"for-Alice-zbevnica","type":"html","content":{}}"#, nil
            ),
            ("session.open", "s-1", nil, #"{"client":null,"user":"Alice-zbevnica"}"#),
            ("session.revoke", "s-1", #"{"user":"Alice-zbevnica"}"#, nil),
            ("session.revoke_user", "Alice-zbevnica", nil, #"{"ended":2}"#),
            ("webhook.create", "wh_1", nil, #"{"batch_size":100,"user":"Alice-zbevnica"}"#),
            ("event.unmask", "list", nil, #"{"message_id":"m-Alice-zbevnica","user":"Alice-zbevnica"}"#),
            ("event.unmask", "list", nil, #""Alice-zbevnica""#),
            ("later.thing", "Alice-zbevnica", #"{"who":"Alice-zbevnica"}"#, #"["Alice-zbevnica"]"#),
        ] as [(String, String, String?, String?)])
    func noEntryNamesAUserOrTheUsersMessages(
        action: String, target: String, before: String?, after: String?
    ) {
        let text = shown(action, target, before: before, after: after)
        #expect(!text.lowercased().contains("alice"), "\(text)")
        if action == "session.revoke_user" {
            #expect(text.hasPrefix("u-"), "the pseudonym is missing: \(text)")
        }
    }

    @Test func theTargetOfASettingIsShown() {
        #expect(shown("app.rename", "shop", before: #""A""#, after: #""B""#) == "shop - -")
        #expect(
            shown("project.item.put", "in_app_message/m", after: #"{"id":"m"}"#) == "in_app_message/m - -")
    }

    /// A webhook's URL is often its only secret.
    @Test func noEntryKeepsTheURLOfADestination() throws {
        let bench = try AdminBench()
        let any = try bench.token("admin").merging(["If-Match": "*"]) { $1 }
        func send(_ method: String, _ path: String, _ body: String) throws {
            let answer = try bench.ask(method, "apps/shop/" + path, body, any)
            #expect([200, 201].contains(answer.status), "\(answer.body)")
        }
        for secret in ["T0/s3cr3t-one", "in?key=s3cr3t-two"] {
            let url = "https://hooks.example/" + secret
            try send("PUT", "webhook", #"{"url":"\#(url)"}"#)
            try send("PUT", "key-source", #"{"url":"\#(url)"}"#)
            try send(
                "PUT", "project", #"{"token":"shop","customer_tokens":"off","webhook":{"url":"\#(url)"}}"#)
            try send("POST", "webhooks", #"{"url":"\#(url)"}"#)
        }
        let hook = try #require(try bench.apps.webhooks.all(of: "shop").first)
        try send("PATCH", "webhooks/\(hook.id)", #"{"url":"https://hooks.example/s3cr3t-three"}"#)
        try send("POST", "webhooks/\(hook.id)/pause", "{}")
        try send("POST", "files/pause", "{}")
        #expect(try bench.ask("DELETE", "apps/shop/webhooks/\(hook.id)", nil, any).status == 204)
        let entries = try bench.apps.auditLog.entries(limit: 500)
        let values = entries.flatMap { [$0.before, $0.after] }.compactMap(\.self).joined(separator: "\n")
        #expect(!values.contains("s3cr3t"), "\(values)")
        // The entry shows that the destination has changed, and its host.
        let change = try #require(entries.first { $0.action == "webhook.change" })
        #expect(change.before?.contains("https://hooks.example/…#") == true, "\(change.before ?? "")")
        #expect(change.before != change.after)
        #expect(try bench.apps.auditLog.verify().brokenAt == nil)
        #expect(entries.allSatisfy { $0.subject != .unknown })
    }

    @Test(arguments: [
        ("https://hooks.example", "https://hooks.example"),
        ("https://hooks.example/", "https://hooks.example/"),
        ("https://hooks.example:8443/a", "https://hooks.example:8443/…#"),
        ("https://h.example?k=v", "https://h.example/…#"), ("", ""), ("no-url", "…"),
    ])
    func anAuditedURLIsReducedToItsOriginAndAHash(url: String, beginning: String) {
        let audited = OutgoingURL.audited(url)
        #expect(audited.hasPrefix(beginning))
        #expect(audited.utf8.count == beginning.utf8.count + (beginning.hasSuffix("#") ? 8 : 0))
    }
}
