internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

enum TokenCreateCommand {
    private static let key = Flag(
        "key", .path("FILE"), help: "the private key as PEM; - reads standard input")
    private static let user = Flag("user", .text("ID"), help: "the user: becomes sub")
    private static let lifetime = Flag(
        "lifetime", .duration(.seconds, 1...31_536_000), default: "3600", help: "how long it is valid")
    private static let audience = Flag("audience", .text("TEXT"), help: "becomes aud")
    private static let issuer = Flag("issuer", .text("TEXT"), help: "becomes iss")
    private static let claim = Flag(
        "claim", .text("NAME=VALUE"), maximumCount: 32,
        help: "another claim; a value that is JSON is taken as JSON, else as text")
    private static let keyID = Flag("kid", .text("ID"), help: "becomes kid in the header")
    private static let algorithm = Flag(
        "alg", .choice(JWSAlgorithm.all.map(\.rawValue)),
        help: "default: RS256, ES256 or EdDSA, depending on the key")
    private static let now = Flag(
        "now", .integer("EPOCH", 0...4_102_444_800), help: "becomes iat; default: now")

    static let command = Command(
        "token create", summary: "Sign a token for a user or a customer and print it",
        details: """
            For trials and tests: in production your backend signs with a JWT library. With --customer-id it creates a
            customer token for the Bloomreach dialect, signed with HS256 by a private key of the project (--secret-file and
            --kid) or by any key that the app allows (--key).
            """,
        flags: [
            key, user, CustomerTokenFlags.customerID, CustomerTokenFlags.secret, lifetime, audience, issuer,
            claim, keyID, algorithm, now,
        ],
        examples: [
            "A token for an hour": "countersign token create --key private.pem --user user-1",
            "With claims of an identity provider":
                "countersign token create --key private.pem --user user-1 --claim tenant=acme --claim 'roles=[\"admin\"]'",
            "A customer token":
                "countersign token create --customer-id registered=ada --secret-file secret.txt --kid backend",
        ]
    ) { invocation in
        let issuedAt = try invocation.integer(of: now) ?? Int(Date().timeIntervalSince1970)
        var claims: JSONObject = [
            "iat": .integer(Int64(issuedAt)),
            "exp": .integer(Int64(issuedAt + (try invocation.integer(of: lifetime) ?? 3600))),
        ]
        claims["aud"] = try invocation.json(of: audience)
        claims["iss"] = try invocation.json(of: issuer)
        for text in invocation.values(of: claim) {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw CommandError(.usage, "--claim takes a name and a value", hint: "--claim tenant=acme")
            }
            let name = String(parts[0])
            guard claims[name] == nil, name != "sub" else {
                throw CommandError(.usage, "the token would have the claim \(name) twice")
            }
            claims[name] = JSONValue(parsing: Array(parts[1].utf8)) ?? .string(String(parts[1]))
        }
        let customerIDs = try CustomerTokenFlags.customerIDs(invocation)
        let user = try invocation.value(of: user)
        guard customerIDs.isEmpty || user == nil else {
            throw CommandError(
                .usage, "a token is for a user or for a customer", hint: "--user or --customer-id")
        }
        if let customerKey = try CustomerTokenFlags.key(invocation, keyID: keyID) {
            guard !customerIDs.isEmpty else {
                throw CommandError(.usage, "a customer is missing", hint: "--customer-id registered=ID")
            }
            guard try invocation.value(of: key) == nil, try invocation.value(of: algorithm) == nil else {
                throw CommandError(.usage, "--secret-file signs with HS256: leave out --key and --alg")
            }
            return try invocation.io.print(customerKey.sign(customerIDs: customerIDs, claims: claims))
        }
        guard let file = try invocation.value(of: key) else {
            throw CommandError(
                .usage, "a key is missing",
                hint: customerIDs.isEmpty
                    ? "create one with `countersign key generate`, then give --key private.pem"
                    : "--secret-file FILE and --kid ID for HS256, or --key FILE")
        }
        if !customerIDs.isEmpty {
            claims["sub"] = .object(JSONObject(customerIDs.mapValues { .string($0) }))
        } else if let user, !user.isEmpty {
            claims["sub"] = .string(user)
        } else {
            throw CommandError(.usage, "a user is missing", hint: "--user ID, or --customer-id NAME=VALUE")
        }
        do {
            let signer = try SigningKey(
                pem: try invocation.text(ofFile: file),
                algorithm: try invocation.value(of: algorithm).map(JWSAlgorithm.init(rawValue:)))
            try invocation.io.print(
                try signer.sign(claims: claims, keyID: try invocation.value(of: keyID)))
        } catch let error as JOSEError {
            throw CommandError(.failed, "\(file): \(error.reason)")
        }
    }
}
