internal import CountersignCore
internal import CountersignJSON

/// Verifies the tokens that one app's backend signs for its users, strictly and in a fixed order of checks.
/// Immutable and thread-safe. Create a new verifier when the app's keys or policy change.
public struct TokenVerifier: Sendable {
    /// The app's keys.
    public let keys: KeyRing
    /// The app's requirements for its tokens.
    public let policy: ClaimsPolicy

    private let cached: CacheOwner?
    private let signatures: SignatureVerifier
    private let leeway: Double
    private let allowed: [(name: [UInt8], scheme: SignatureScheme)]
    private let keyNames: [(name: [UInt8], entry: Int)]
    private let types: [[UInt8]]

    /// Creates a verifier for one app.
    ///
    /// - Parameters:
    ///   - keys: The app's keys.
    ///   - policy: The app's requirements for its tokens.
    ///   - cache: Caches tokens that are valid or only expired, until the verifier is deallocated; nil
    ///     verifies each token in full.
    public init(keys: KeyRing, policy: ClaimsPolicy = ClaimsPolicy(), cache: VerifiedTokenCache? = nil) {
        self.keys = keys
        self.policy = policy
        cached = cache.map(CacheOwner.init)
        leeway = policy.boundedLeeway
        types = policy.types.map { HeaderRules.mediaType($0.utf8) }
        signatures = SignatureVerifier(keys)
        allowed = policy.algorithms.compactMap { algorithm in
            algorithm.scheme.map { (Array(algorithm.rawValue.utf8), $0) }
        }
        keyNames = keys.entries.enumerated().flatMap { index, entry in
            [entry.id, entry.key?.kid, entry.key?.thumbprint].compactMap { $0 }
                .map { (Array($0.utf8), index) }
        }
    }

    /// Verifies the token of one request.
    ///
    /// A request without a user id is anonymous and is not checked. An empty string is not a user id.
    ///
    /// - Parameters:
    ///   - token: The token as sent; nil without a token.
    ///   - userID: The user of the request; nil if only the payload names users. Then `sub` must be in
    ///     `payloadUserIDs`.
    ///   - payloadUserIDs: All user ids in the request's payload.
    ///   - now: The current time in seconds since 1970.
    ///   - deviceTime: The device's clock as stated by the request, in seconds since 1970; nil if the request
    ///     does not state it.
    /// - Returns: All faults that were found. The token is accepted if there are no faults.
    public func verify(
        _ token: String?, userID: String?, payloadUserIDs: [String] = [], at now: Double,
        deviceTime: Double? = nil
    ) -> VerificationReport {
        var report = VerificationReport()
        let users = User(id: userID, payloadIDs: payloadUserIDs)
        guard let user = users.expected else {
            report.isAnonymous = true
            return report
        }
        var token = token ?? ""
        token.withUTF8 { check($0, user: users, at: now, deviceTime: deviceTime, &report) }
        if payloadUserIDs.contains(where: { !$0.isEmpty && !$0.hasSameBytes(as: user) }) {
            report.add(.payloadUserIDMismatch, "the request carries ids of more than one user")
            report.claims = nil
        }
        return report
    }

    /// Verifies a token without checking its user.
    package func inspect(_ token: String?, at now: Double) -> VerificationReport {
        var report = VerificationReport()
        var token = token ?? ""
        token.withUTF8 { check($0, user: nil, at: now, deviceTime: nil, &report) }
        return report
    }

    /// Checks a token from its bytes. An empty buffer is a request without a token.
    private func check(
        _ token: UnsafeBufferPointer<UInt8>, user: User?, at now: Double, deviceTime: Double?,
        _ report: inout VerificationReport
    ) {
        guard let cached, !token.isEmpty, token.count <= CompactJWS.maximumBytes else {
            if let trusted = trust(token, &report) {
                check(trusted, user: user, at: now, deviceTime: deviceTime, &report)
            }
            return
        }
        let key = VerifiedTokenCache.key(token, owner: cached.id)
        if let known = cached.cache.find(key) {
            check(known, user: user, at: now, deviceTime: deviceTime, &report)
        } else if let trusted = trust(token, &report) {
            check(trusted, user: user, at: now, deviceTime: deviceTime, &report)
            // Expired tokens are cached too, because clients keep sending them.
            if report.faults.allSatisfy({ $0.code == .expired }) { cached.cache.insert(trusted, for: key) }
        }
    }

    private func check(
        _ trusted: TrustedToken, user: User?, at now: Double, deviceTime: Double?,
        _ report: inout VerificationReport
    ) {
        report.matchedKeyID = keys.entries[trusted.entry].id
        if trusted.typeIsMissing { report.warnings.append(.typeMissing) }
        checkClaims(trusted, user: user, at: now, deviceTime: deviceTime, &report)
        if report.faults.isEmpty { report.claims = VerifiedClaims(trusted.claims) }
    }
}

private struct User {
    let id: String?
    let payloadIDs: [String]

    /// The id that all other ids in the request must equal; nil for an anonymous request.
    var expected: String? {
        if let id, !id.isEmpty { return id }
        return payloadIDs.first { !$0.isEmpty }
    }

    /// Whether `subject` is the request's user or, without one, any user id in the payload.
    func isNamed(by subject: String) -> Bool {
        if subject.isEmpty { return false }
        if let id, !id.isEmpty { return id.hasSameBytes(as: subject) }
        return payloadIDs.contains { $0.hasSameBytes(as: subject) }
    }
}

// MARK: - Checks that depend only on the token, the keys and the policy

extension TokenVerifier {
    private struct Header {
        var problems: [String] = []
        var scheme: SignatureScheme?
        var preferred: Int?
        var typeIsMissing = false
    }

    private func trust(
        _ token: UnsafeBufferPointer<UInt8>, _ report: inout VerificationReport
    ) -> TrustedToken? {
        if !token.isEmpty { cached?.cache.countMiss() }
        return signatures.withWorkspace { workspace in
            guard let (form, parts) = read(token, in: workspace, &report) else {
                checkKeys(&report)
                return nil
            }
            let header = readHeader(parts.header, in: workspace)
            for problem in header.problems { report.add(.decodingError, problem) }
            if header.scheme == nil {
                report.add(.incorrectAlgorithm, "alg is missing or not one that this app allows")
            }
            checkKeys(&report)
            guard report.faults.isEmpty, let scheme = header.scheme else { return nil }
            guard signatures.hasKey(for: scheme) else {
                report.add(.noMatchingPublicKeys, "the app has no usable key for this algorithm")
                return nil
            }
            let input = UnsafeBufferPointer(rebasing: token[..<form.payloadEnd])
            let entry = signatures.entry(
                verifying: parts.signature, of: input, by: scheme, preferred: header.preferred, in: workspace)
            guard let entry else {
                report.add(.noMatchingPublicKeys, "no public key of the app verifies the signature")
                return nil
            }
            // The payload is parsed only after the signature has been verified.
            guard let claims = readClaims(parts.payload, in: workspace) else {
                report.matchedKeyID = keys.entries[entry].id
                report.add(
                    .invalidPayload, "the claims are not a JSON object in UTF-8 without duplicate members")
                return nil
            }
            return TrustedToken(claims: claims, entry: entry, typeIsMissing: header.typeIsMissing)
        }
    }

    private func read(
        _ token: UnsafeBufferPointer<UInt8>, in workspace: SignatureVerifier.Workspace,
        _ report: inout VerificationReport
    ) -> (CompactForm, CompactForm.Parts)? {
        if token.allSatisfy({ $0 == 0x20 || (0x09...0x0D).contains($0) }) {
            report.add(.missingToken, token.isEmpty ? "the request carries no token" : "the token is blank")
            return nil
        }
        guard token.count <= CompactJWS.maximumBytes else {
            report.add(.decodingError, "the token is longer than 8 KiB")
            return nil
        }
        guard let form = CompactForm(token) else {
            report.add(.decodingError, "the token has not exactly three parts")
            return nil
        }
        guard let parts = form.decode(token, scratch: workspace.scratch) else {
            report.add(.decodingError, "a part of the token is not base64url without padding")
            return nil
        }
        return (form, parts)
    }

    private func readHeader(
        _ json: UnsafeRawBufferPointer, in workspace: SignatureVerifier.Workspace
    ) -> Header {
        let header = try? workspace.parser.parse(json) { node -> Header in
            var header = Header(problems: HeaderRules.problems(of: node, types: types))
            header.typeIsMissing = node["typ"] == nil
            if policy.requiresType, header.typeIsMissing { header.problems.append("the header has no typ") }
            if let alg = node["alg"]?.utf8 {
                header.scheme = allowed.first { alg.elementsEqual($0.name) }?.scheme
            }
            if let kid = node["kid"]?.utf8 {
                header.preferred = keyNames.first { kid.elementsEqual($0.name) }?.entry
            }
            return header
        }
        return header
            ?? Header(problems: ["the header is not a JSON object in UTF-8 without duplicate members"])
    }

    private func readClaims(
        _ json: UnsafeRawBufferPointer, in workspace: SignatureVerifier.Workspace
    ) -> Claims? {
        let claims = try? workspace.parser.parse(json) { root in
            root.kind == .object
                ? Claims(root, json: json, userClaim: policy.userClaim, keeping: policy.keptClaims) : nil
        }
        return claims ?? nil
    }

    /// Adds a fault if the app has no public key, or if none of its public keys can be used.
    private func checkKeys(_ report: inout VerificationReport) {
        if keys.entries.isEmpty {
            report.add(
                .noMatchingPublicKeys,
                "the app has no public key, and none was loaded from a followed address")
        } else if keys.entries.allSatisfy({ $0.key == nil }) {
            let problems = keys.entries.compactMap(\.problem?.reason).joined(separator: "; ")
            report.add(.publicKeyError, "none of the app's public keys can be used: \(problems)")
        }
    }
}

// MARK: - Checks of claims, for each request

extension TokenVerifier {
    private func checkClaims(
        _ trusted: TrustedToken, user: User?, at now: Double, deviceTime: Double?,
        _ report: inout VerificationReport
    ) {
        let claims = trusted.claims
        checkRegisteredClaims(claims, at: now, deviceTime: deviceTime, &report)
        let issuers = keys.entries[trusted.entry].issuers
        if !issuers.isEmpty { check(claims, isOf: issuers, &report) }
        if let user { checkSubject(claims, user, &report) }
    }

    func checkRegisteredClaims(
        _ claims: Claims, at now: Double, deviceTime: Double?, _ report: inout VerificationReport
    ) {
        report.checkedClaims = true
        for problem in claims.problems(userClaim: policy.userClaim) { report.add(.invalidPayload, problem) }
        if case .absent = claims.expiresAt { report.add(.expirationRequired, "exp is absent") }
        checkTimes(claims, at: now, deviceTime: deviceTime, &report)
        checkLifetime(claims, at: now, &report)
        checkAudience(claims, &report)
        checkIssuer(claims, &report)
    }

    private struct TimeFaults: OptionSet {
        let rawValue: Int
        static let expired = TimeFaults(rawValue: 1)
        static let notYetValid = TimeFaults(rawValue: 2)
        static let issuedInFuture = TimeFaults(rawValue: 4)
    }

    /// Each comparison is written so that a NaN `now` causes a fault.
    private func timeFaults(_ claims: Claims, at now: Double) -> TimeFaults {
        var faults: TimeFaults = []
        if let exp = claims.expiresAt.value, !(now < exp + leeway) { faults.insert(.expired) }
        if let nbf = claims.notBefore.value, !(now + leeway >= nbf) { faults.insert(.notYetValid) }
        if let iat = claims.issuedAt.value, !(iat <= now + leeway) { faults.insert(.issuedInFuture) }
        return faults
    }

    private func checkTimes(
        _ claims: Claims, at now: Double, deviceTime: Double?, _ report: inout VerificationReport
    ) {
        let faults = timeFaults(claims, at: now)
        if faults.isEmpty { return }
        func distance(_ claim: Claims.Value<Double>) -> Int {
            // Limits the distance, because `Int` traps on a number that it cannot represent.
            Int(min(9e15, abs(now - (claim.value ?? now)).rounded()))
        }
        if faults.contains(.expired) {
            report.add(.expired, "exp passed \(distance(claims.expiresAt)) s ago")
        }
        if faults.contains(.notYetValid) {
            report.add(.notYetValid, "nbf lies \(distance(claims.notBefore)) s ahead")
        }
        if faults.contains(.issuedInFuture) {
            report.add(.issuedInFuture, "iat lies \(distance(claims.issuedAt)) s ahead")
        }
        if let deviceTime, deviceTime.isFinite, timeFaults(claims, at: deviceTime).isEmpty {
            report.clockSkewSeconds = deviceTime - now
        }
    }

    private func checkLifetime(_ claims: Claims, at now: Double, _ report: inout VerificationReport) {
        guard let exp = claims.expiresAt.value else { return }
        // A token without `iat` was issued before now, so its remaining lifetime is a lower bound.
        let lifetime = exp - (claims.issuedAt.value ?? now + leeway)
        if lifetime > 86_400 { report.warnings.append(.longLifetime) }
        if case .malformed = claims.issuedAt { return }
        if let maximum = policy.maximumLifetime, !(lifetime <= maximum) {
            report.add(.lifetimeTooLong, "the token lives \(lifetime) s; this app allows \(maximum) s")
        }
    }

    private func checkAudience(_ claims: Claims, _ report: inout VerificationReport) {
        if policy.audiences.isEmpty { return }
        switch claims.audience {
        case .value(let named) where named.contains(where: { policy.audiences.contains($0) }): return
        case .value: report.add(.audienceMismatch, "aud does not name this app's audience")
        case .absent where policy.requiresAudience: report.add(.audienceMismatch, "aud is absent")
        case .absent, .malformed: return
        }
    }

    private func checkIssuer(_ claims: Claims, _ report: inout VerificationReport) {
        if policy.issuers.isEmpty { return }
        switch claims.issuer {
        case .value(let issuer) where policy.issuers.contains(issuer): return
        case .value: report.add(.issuerMismatch, "iss is not this app's issuer")
        case .absent where policy.requiresIssuer: report.add(.issuerMismatch, "iss is absent")
        case .absent, .malformed: return
        }
    }

    /// Checks that the provider that published the key is the one that the token names.
    private func check(_ claims: Claims, isOf issuers: [String], _ report: inout VerificationReport) {
        if report.faults.contains(where: { $0.code == .issuerMismatch }) { return }
        let named = (claims.issuer.value ?? "").utf8
        let base = named.last == UInt8(ascii: "/") ? named.dropLast() : named[...]
        if !issuers.contains(where: { base.elementsEqual($0.utf8) }) {
            report.add(.issuerMismatch, "iss is not the provider whose key verifies the signature")
        }
    }

    private func checkSubject(_ claims: Claims, _ user: User, _ report: inout VerificationReport) {
        let claim = policy.userClaim
        switch claims.subject {
        case .value(let subject) where user.isNamed(by: subject): return
        case .value(let subject) where subject.isEmpty: report.add(.subjectMismatch, "\(claim) is empty")
        case .value: report.add(.subjectMismatch, "\(claim) is not the user of this request")
        case .absent: report.add(.subjectMismatch, "\(claim) is absent")
        case .malformed: return
        }
    }
}
