package import CountersignCore
internal import CountersignCrypto
internal import CountersignJSON

/// Verifies Bloomreach's customer tokens, in which `sub` is an object of the customer's ids.
///
/// The app's backend signs these tokens with HS256, where `kid` names the secret, or with a key of the app's ring.
/// ``TokenVerifier`` does not accept HS256, so a public key can never be used as a secret (RFC 8725, section 3.1).
package struct CustomerTokenVerifier: Sendable {
    private let keys: [CustomerTokenKey]
    private let ring: TokenVerifier

    package init(keys: [CustomerTokenKey], ring: TokenVerifier) {
        self.keys = keys
        self.ring = ring
    }

    /// Verifies a token. Returns the report and, if the token is valid, its `iat` and the ids in `sub`. The
    /// caller must compare these ids with the ids in the request.
    package func verify(
        _ token: String, at now: Double
    ) -> (report: VerificationReport, identifiers: [(name: String, value: String)], issuedAt: Double?) {
        var report = VerificationReport()
        let jws: CompactJWS
        do throws(JOSEError) {
            jws = try CompactJWS(parsing: token)
        } catch {
            report.add(token.isEmpty ? .missingToken : .decodingError, error.reason)
            return (report, [], nil)
        }
        if jws.algorithm?.hasSameBytes(as: "HS256") == true {
            check(jws, token, at: now, &report)
        } else {
            report = ring.inspect(token, at: now)
        }
        // Without a verified signature, the payload is not trusted.
        guard report.matchedKeyID != nil else { return (report, [], nil) }
        let identifiers = Self.subject(of: jws)
        let issuedAt = try? Self.parser().parse(bytes: jws.payload) { $0["iat"]?.double }
        let expected = Claims.isNoString(ring.policy.userClaim)
        report.faults.removeAll { $0.code == .invalidPayload && $0.detail == expected }
        report.claims = nil
        if identifiers.isEmpty {
            report.add(.invalidPayload, "sub is not an object of the customer's ids")
        }
        return report.isAccepted ? (report, identifiers, issuedAt ?? nil) : (report, [], nil)
    }

    /// Verifies a token, and that `sub` contains all `customerIDs` except `cookie`, which identifies the device
    /// and not the customer. For tools that explain tokens.
    package func verify(
        _ token: String, naming customerIDs: BytewiseDictionary<String>, at now: Double
    ) -> VerificationReport {
        var (report, identifiers, _) = verify(token, at: now)
        guard report.isAccepted else { return report }
        for (name, value) in customerIDs.sorted(by: { $0.key < $1.key }) where name != "cookie" {
            let isThere = identifiers.contains {
                $0.name.hasSameBytes(as: name) && $0.value.hasSameBytes(as: value)
            }
            if !isThere { report.add(.subjectMismatch, "sub does not name this \(name)") }
        }
        return report
    }

    private func check(
        _ jws: CompactJWS, _ token: String, at now: Double, _ report: inout VerificationReport
    ) {
        guard let keyID = jws.keyID, let key = keys.first(where: { $0.id.hasSameBytes(as: keyID) })
        else {
            report.add(.noMatchingPublicKeys, "kid names no private key of the app")
            return
        }
        let bytes = Array(token.utf8)
        let end = bytes.lastIndex(of: UInt8(ascii: ".")) ?? bytes.endIndex
        guard HMACSHA256.isValid(jws.signature, of: Array(bytes[..<end]), key: key.secret) else {
            report.add(.noMatchingPublicKeys, "the private key that kid names did not make the signature")
            return
        }
        report.matchedKeyID = key.id
        // The payload is parsed only after the signature has been verified.
        let claims = try? Self.parser().parse(bytes: jws.payload) { root in
            root.kind == .object ? jws.payload.withUnsafeBytes { Claims(root, json: $0) } : nil
        }
        guard let claims = claims ?? nil else {
            report.add(
                .invalidPayload, "the claims are not a JSON object in UTF-8 without duplicate members")
            return
        }
        ring.checkRegisteredClaims(claims, at: now, deviceTime: nil, &report)
    }

    /// The ids in `sub`; empty if it is not an object of non-empty strings.
    private static func subject(of jws: CompactJWS) -> [(name: String, value: String)] {
        let identifiers = try? parser().parse(bytes: jws.payload) { root -> [(name: String, value: String)] in
            guard let subject = root["sub"] else { return [] }
            var identifiers: [(name: String, value: String)] = []
            for (name, value) in subject.members {
                guard let text = value.utf8.flatMap({ String(validating: $0, as: UTF8.self) }), !text.isEmpty
                else { return [] }
                identifiers.append((String(decoding: name, as: UTF8.self), text))
            }
            return identifiers
        }
        return identifiers ?? []
    }

    private static func parser() -> StrictJSONParser {
        StrictJSONParser(
            maximumBytes: CompactJWS.maximumBytes, maximumDepth: CompactJWS.maximumDepth)
    }
}
