internal import CountersignCore
internal import Foundation

enum SigningKeyCommand {
    static let commands = [list, rotate]

    private static let now = Flag(
        "compromised", help: "sign with the new key at once, and reject every token signed with the old keys")

    private static let list = Command(
        "signing-key list", summary: "List the gateway's own keys, which sign access tokens",
        flags: [.json] + Flag.target,
        examples: ["Which key signs?": "countersign signing-key list"]
    ) { invocation in
        let keys = try await invocation.admin().items("signing-keys")
        try invocation.print(.array(keys)) {
            if keys.isEmpty {
                invocation.io.say("No key yet: the first one is created with the first token.")
            }
            for key in keys { try invocation.io.print(line(key)) }
        }
    }

    private static let rotate = Command(
        "signing-key rotate", summary: "Create a new key that signs access tokens",
        details: """
            The new key is published at once and signs after an hour; the old key verifies for another day. The gateway
            does this automatically every 90 days. With --compromised there is no overlap: all clients must refresh.
            """,
        flags: [now, .json] + Flag.target,
        examples: ["A new key": "countersign signing-key rotate"]
    ) { invocation in
        let key = try await invocation.admin().post(
            "signing-keys", body: ["compromised": .bool(invocation.isSet(now))])
        try invocation.print(key) { try invocation.io.print(line(key)) }
    }

    private static func line(_ key: JSONValue) -> String {
        let from = key["signs_from_ms"].integer ?? 0
        let isAhead = from > Milliseconds(Date()).count
        let what =
            key["signs"].isTrue ? "signs" : isAhead ? "signs from \(key["signs_from_ms"].time)" : "verifies"
        return "\(key["id"].shown)  \(what)"
    }
}
