internal import CountersignCore
internal import CountersignGateway
internal import Foundation

/// `countersign signing-key …`.
enum SigningKeyCommand {
    static let commands = [list, rotate]

    private static let now = Flag(
        "compromised", help: "sign with it at once, and refuse every token that the old keys have signed")

    private static let list = Command(
        "signing-key list", summary: "List the gateway's own keys, which sign access tokens",
        flags: [.json, .data],
        examples: [.init("Which key signs?", "countersign signing-key list")]
    ) { invocation in
        let keys = try invocation.sessionDirectory().signingKeys()
        if invocation.isSet(.json) {
            try invocation.io.print(.array(keys.map(\.json)))
            return .done
        }
        if keys.isEmpty { invocation.io.say("No key yet: the first is made with the first token.") }
        for key in keys { try invocation.io.print(key.line) }
        return .done
    }

    private static let rotate = Command(
        "signing-key rotate", summary: "Make a new key that signs access tokens",
        details: """
            It is published at once and signs in an hour; the old one verifies for a day more. The gateway does so by itself
            every 90 days. With --compromised there is no overlap: all clients must refresh.
            """,
        flags: [now, .json, .data],
        examples: [.init("A new key", "countersign signing-key rotate")]
    ) { invocation in
        let key = try invocation.sessionDirectory().rotateSigningKey(endsOthers: invocation.isSet(now))
        if invocation.isSet(.json) {
            try invocation.io.print(key.json)
        } else {
            try invocation.io.print(key.line)
        }
        return .done
    }
}

extension SessionDirectory.SigningKeyInfo {
    fileprivate var line: String {
        let isAhead = signsFromMilliseconds > Int64(Date().timeIntervalSince1970 * 1000)
        let ahead = "signs from \(RFC3339.text(milliseconds: signsFromMilliseconds))"
        return "\(id)  \(signs ? "signs" : isAhead ? ahead : "verifies")"
    }

    fileprivate var json: JSONValue {
        ["id": .string(id), "signs": .bool(signs), "signs_from_ms": .integer(signsFromMilliseconds)]
    }
}
