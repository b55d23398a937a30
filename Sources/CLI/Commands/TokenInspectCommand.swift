internal import CountersignCore
internal import CountersignCrypto
internal import Foundation

enum TokenInspectCommand {
    static let command = Command(
        "token inspect", summary: "Decode a token without verifying it",
        details: """
            The token is NOT VERIFIED: its claims may be forged. `countersign token verify` checks a token. The signature
            is not shown, so that the output cannot be replayed.
            """,
        positionals: [.token], flags: [.json],
        examples: ["What does this token claim?": "countersign token inspect token.txt"]
    ) { invocation in
        let text = try invocation.tokenText()
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            throw CommandError(
                .failed,
                "this is not a compact JWS: it has \(parts.count.counted("part")) and not three",
                hint: "a token is header.claims.signature")
        }
        let header = try object(parts[0], "header")
        let claims = try object(parts[1], "claims")
        try invocation.print(["verified": false, "header": .object(header), "claims": .object(claims)]) {
            try invocation.io.print("UNVERIFIED: the signature was not checked.")
            try invocation.io.print("header  \(JSONValue.object(header).shownJSON)")
            for (name, value) in claims.sorted(by: { $0.key < $1.key }) {
                try invocation.io.print("\(TerminalText.safe(name))  \(value.shownJSON)\(time(name, value))")
            }
        }
    }

    private static func object(_ part: Substring, _ name: String) throws -> JSONObject {
        guard let bytes = Base64URL.decode(String(part)) else {
            throw CommandError(.failed, "the \(name) is not base64url without padding")
        }
        guard case .object(let members)? = JSONValue(parsing: bytes, maximumDepth: 32) else {
            throw CommandError(.failed, "the \(name) is not a JSON object with each member once")
        }
        return members
    }

    private static func time(_ name: String, _ value: JSONValue) -> String {
        guard ["exp", "iat", "nbf"].contains(name) else { return "" }
        let seconds: Double
        switch value {
        case .integer(let number): seconds = Double(number)
        case .number(let number): seconds = number
        default: return ""
        }
        let milliseconds = Milliseconds(seconds: seconds).count
        guard RFC3339.instants.contains(milliseconds) else { return "" }
        let away = Int64(seconds - Date().timeIntervalSince1970)
        return "  (\(RFC3339.text(milliseconds: milliseconds)), \(Quantity.distance(seconds: away)))"
    }
}
