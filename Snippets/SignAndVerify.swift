// Sign a token as a backend does, and verify it as the gateway does.
import CountersignJOSE
import Foundation

func sign(privateKeyPEM: String, userID: String) throws -> String {
    let key = try SigningKey(pem: privateKeyPEM)
    let now = Int64(Date().timeIntervalSince1970)
    return try key.sign(
        claims: ["sub": .string(userID), "iat": .integer(now), "exp": .integer(now + 3600)])
}

func verify(token: String, publicKeyPEM: String) {
    let ring = KeyRing(entries: [KeyRing.Entry(id: "2026", text: publicKeyPEM)])
    let verifier = TokenVerifier(keys: ring, policy: ClaimsPolicy(), cache: VerifiedTokenCache())

    let report = verifier.verify(token, userID: "user-1", at: Date().timeIntervalSince1970)
    if let claims = report.claims {
        print(claims.subject)
    } else {
        print(report.faults)
    }
}
