internal import CountersignCore

/// Judges signed-user tokens for one app: strictly, and always by the same order of checks.
///
/// A value that never changes: make a new one when the app's keys or policy change. It may be used by many
/// threads at once. Nothing in it knows the time; the caller says what time it is.
public struct TokenVerifier: Sendable {
    /// The app's keys.
    public let keys: KeyRing
    /// What the app asks of its tokens.
    public let policy: ClaimsPolicy

    private let cached: CacheOwner?
    private let signatures: SignatureVerifier
    private let leeway: Double
    private let allowed: [(name: [UInt8], scheme: SignatureScheme)]
    private let keyNames: [(name: [UInt8], entry: Int)]

    /// A verifier for one app.
    ///
    /// - Parameters:
    ///   - keys: The app's keys.
    ///   - policy: What the app asks of its tokens.
    ///   - cache: Where tokens that were accepted, or had nothing wrong but their expiry, are remembered until this
    ///     verifier goes; nil: every token is verified in full.
    public init(keys: KeyRing, policy: ClaimsPolicy = ClaimsPolicy(), cache: VerifiedTokenCache? = nil) {
        self.keys = keys
        self.policy = policy
        cached = cache.map(CacheOwner.init)
        leeway = policy.boundedLeeway
        signatures = SignatureVerifier(keys)
        allowed = policy.algorithms.compactMap { algorithm in
            algorithm.scheme.map { (Array(algorithm.rawValue.utf8), $0) }
        }
        keyNames = keys.entries.enumerated().flatMap { index, entry in
            [entry.id, entry.key?.kid, entry.key?.thumbprint].compactMap { $0 }
                .map { (Array($0.utf8), index) }
        }
    }

    /// Judges the token of one request.
    ///
    /// A request without any user id is anonymous and not judged; an empty string is no user id.
    ///
    /// - Parameters:
    ///   - token: The token as it came; nil if the request has none.
    ///   - userID: Whom the request speaks for; nil if only the payload says it: then `sub` must be
    ///     one of `payloadUserIDs`.
    ///   - payloadUserIDs: Every user id found in the request's payload.
    ///   - now: The time, in seconds since 1970.
    ///   - deviceTime: The device's clock as the request states it, in seconds since 1970; nil if it does
    /// not.
    /// - Returns: All faults that could be found; none means accepted.
    public func verify(
        _ token: String?, userID: String?, payloadUserIDs: [String] = [], at now: Double,
        deviceTime: Double? = nil
    ) -> VerificationReport {
        guard var token else {
            return verify(
                bytes: UnsafeBufferPointer(start: nil, count: 0), userID: userID,
                payloadUserIDs: payloadUserIDs, at: now, deviceTime: deviceTime)
        }
        return token.withUTF8 {
            verify(
                bytes: $0, userID: userID, payloadUserIDs: payloadUserIDs, at: now, deviceTime: deviceTime)
        }
    }

    /// Judges the token of one request from its bytes; an empty buffer is a request without a token. See
    /// ``verify(_:userID:payloadUserIDs:at:deviceTime:)``.
    ///
    /// - Parameters:
    ///   - token: The token as it came; not kept.
    ///   - userID: Whom the request speaks for; nil if only the payload says it: then `sub` must be
    ///     one of `payloadUserIDs`.
    ///   - payloadUserIDs: Every user id found in the request's payload.
    ///   - now: The time, in seconds since 1970.
    ///   - deviceTime: The device's clock as the request states it, in seconds since 1970; nil if it does
    /// not.
    /// - Returns: All faults that could be found; none means accepted.
    public func verify(
        bytes token: UnsafeBufferPointer<UInt8>, userID: String?, payloadUserIDs: [String] = [],
        at now: Double, deviceTime: Double? = nil
    ) -> VerificationReport {
        var report = VerificationReport()
        let users = User(id: userID, payloadIDs: payloadUserIDs)
        guard let user = users.expected else {
            report.isAnonymous = true
            return report
        }
        judge(token, user: users, at: now, deviceTime: deviceTime, &report)
        if payloadUserIDs.contains(where: { !$0.isEmpty && !$0.hasSameBytes(as: user) }) {
            report.add(.payloadUserIDMismatch, "the request carries ids of more than one user")
            report.claims = nil
        }
        return report
    }

    /// Judges a token without a request: whose it is is not asked. For tools that explain tokens; a gateway
    /// always knows the user.
    package func inspect(_ token: String?, at now: Double) -> VerificationReport {
        var report = VerificationReport()
        var token = token ?? ""
        token.withUTF8 { judge($0, user: nil, at: now, deviceTime: nil, &report) }
        return report
    }

    private func judge(
        _ token: UnsafeBufferPointer<UInt8>, user: User?, at now: Double, deviceTime: Double?,
        _ report: inout VerificationReport
    ) {
        guard let cached, !token.isEmpty, token.count <= CompactJWS.maximumBytes else {
            if let trusted = trust(token, &report) {
                judge(trusted, user: user, at: now, deviceTime: deviceTime, &report)
            }
            return
        }
        let key = VerifiedTokenCache.key(token, owner: cached.id)
        if let known = cached.cache.find(key) {
            judge(known, user: user, at: now, deviceTime: deviceTime, &report)
        } else if let trusted = trust(token, &report) {
            judge(trusted, user: user, at: now, deviceTime: deviceTime, &report)
            // A client whose token has expired sends it again and again.
            if report.faults.allSatisfy({ $0.code == .expired }) { cached.cache.insert(trusted, for: key) }
        }
    }

    private func judge(
        _ trusted: TrustedToken, user: User?, at now: Double, deviceTime: Double?,
        _ report: inout VerificationReport
    ) {
        report.matchedKeyID = keys.entries[trusted.entry].id
        if trusted.typeIsMissing { report.warnings.append(.typeMissing) }
        judgeClaims(trusted, user: user, at: now, deviceTime: deviceTime, &report)
        if report.faults.isEmpty { report.claims = VerifiedClaims(trusted.claims) }
    }
}

/// Whom a request speaks for.
private struct User {
    let id: String?
    let payloadIDs: [String]

    /// The id that all others must equal; nil for an anonymous request.
    var expected: String? {
        if let id, !id.isEmpty { return id }
        return payloadIDs.first { !$0.isEmpty }
    }

    /// Whether a token for `subject` may speak for the request. Where nothing but the payload names users, any of them
    /// will do: if they differ, that is the fault.
    func isNamed(by subject: String) -> Bool {
        if subject.isEmpty { return false }
        if let id, !id.isEmpty { return id.hasSameBytes(as: subject) }
        return payloadIDs.contains { $0.hasSameBytes(as: subject) }
    }
}

// MARK: - Rows 1 to 6: what does not depend on the request

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
                judgeRing(&report)
                return nil
            }
            let header = readHeader(parts.header, in: workspace)
            for problem in header.problems { report.add(.decodingError, problem) }
            if header.scheme == nil {
                report.add(.incorrectAlgorithm, "alg is missing or not one that this app allows")
            }
            judgeRing(&report)
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
            // Only now is the payload worth reading.
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
            var header = Header(problems: HeaderRules.problems(of: node, types: [policy.type]))
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
            root.kind == .object ? Claims(root, json: json) : nil
        }
        return claims ?? nil
    }

    /// Rows 4 and 5 as far as they do not need a token.
    private func judgeRing(_ report: inout VerificationReport) {
        if keys.entries.isEmpty {
            report.add(.noMatchingPublicKeys, "the app has no public keys")
        } else if keys.entries.allSatisfy({ $0.key == nil }) {
            let problems = keys.entries.compactMap(\.problem?.reason).joined(separator: "; ")
            report.add(.publicKeyError, "none of the app's public keys can be used: \(problems)")
        }
    }
}

// MARK: - Rows 6 to 15: claims, judged at each request

extension TokenVerifier {
    private func judgeClaims(
        _ trusted: TrustedToken, user: User?, at now: Double, deviceTime: Double?,
        _ report: inout VerificationReport
    ) {
        let claims = trusted.claims
        judgeRegistered(claims, at: now, deviceTime: deviceTime, &report)
        if let user { judgeSubject(claims, user, &report) }
    }

    /// All claims but `sub`.
    func judgeRegistered(
        _ claims: Claims, at now: Double, deviceTime: Double?, _ report: inout VerificationReport
    ) {
        report.judgedClaims = true
        for problem in claims.problems { report.add(.invalidPayload, problem) }
        if case .absent = claims.expiresAt { report.add(.expirationRequired, "exp is absent") }
        judgeTimes(claims, at: now, deviceTime: deviceTime, &report)
        judgeLifetime(claims, at: now, &report)
        judgeAudience(claims, &report)
        judgeIssuer(claims, &report)
    }

    private struct TimeFaults: OptionSet {
        let rawValue: Int
        static let expired = TimeFaults(rawValue: 1)
        static let notYetValid = TimeFaults(rawValue: 2)
        static let issuedInFuture = TimeFaults(rawValue: 4)
    }

    /// Each comparison is written so that it fails if `now` is not a number.
    private func timeFaults(_ claims: Claims, at now: Double) -> TimeFaults {
        var faults: TimeFaults = []
        if let exp = claims.expiresAt.value, !(now < exp + leeway) { faults.insert(.expired) }
        if let nbf = claims.notBefore.value, !(now + leeway >= nbf) { faults.insert(.notYetValid) }
        if let iat = claims.issuedAt.value, !(iat <= now + leeway) { faults.insert(.issuedInFuture) }
        return faults
    }

    private func judgeTimes(
        _ claims: Claims, at now: Double, deviceTime: Double?, _ report: inout VerificationReport
    ) {
        let faults = timeFaults(claims, at: now)
        if faults.isEmpty { return }
        func distance(_ claim: Claims.Value<Double>) -> String {
            let seconds = abs(now - (claim.value ?? now)).rounded()
            // Beyond 2^53 a double cannot tell seconds apart.
            return seconds < 9e15 ? "\(Int(seconds)) s" : "\(seconds) s"
        }
        if faults.contains(.expired) {
            report.add(.expired, "exp passed \(distance(claims.expiresAt)) ago")
        }
        if faults.contains(.notYetValid) {
            report.add(.notYetValid, "nbf lies \(distance(claims.notBefore)) ahead")
        }
        if faults.contains(.issuedInFuture) {
            report.add(.issuedInFuture, "iat lies \(distance(claims.issuedAt)) ahead")
        }
        if let deviceTime, deviceTime.isFinite, timeFaults(claims, at: deviceTime).isEmpty {
            report.clockSkewSeconds = deviceTime - now
        }
    }

    private func judgeLifetime(_ claims: Claims, at now: Double, _ report: inout VerificationReport) {
        guard let exp = claims.expiresAt.value else { return }
        // A token without iat was made before now, so what is left of its life is the least that it can be.
        let lifetime = exp - (claims.issuedAt.value ?? now + leeway)
        if lifetime > 86_400 { report.warnings.append(.longLifetime) }
        if case .malformed = claims.issuedAt { return }
        if let maximum = policy.maximumLifetime, !(lifetime <= maximum) {
            report.add(.lifetimeTooLong, "the token lives \(lifetime) s; this app allows \(maximum) s")
        }
    }

    private func judgeAudience(_ claims: Claims, _ report: inout VerificationReport) {
        guard let expected = policy.audience else { return }
        switch claims.audience {
        case .value(let named) where named.contains(where: { $0.hasSameBytes(as: expected) }): return
        case .value: report.add(.audienceMismatch, "aud does not name this app's audience")
        case .absent where policy.requiresAudience: report.add(.audienceMismatch, "aud is absent")
        case .absent, .malformed: return
        }
    }

    private func judgeIssuer(_ claims: Claims, _ report: inout VerificationReport) {
        guard let expected = policy.issuer else { return }
        switch claims.issuer {
        case .value(let issuer) where issuer.hasSameBytes(as: expected): return
        case .value: report.add(.issuerMismatch, "iss is not this app's issuer")
        case .absent where policy.requiresIssuer: report.add(.issuerMismatch, "iss is absent")
        case .absent, .malformed: return
        }
    }

    private func judgeSubject(_ claims: Claims, _ user: User, _ report: inout VerificationReport) {
        switch claims.subject {
        case .value(let subject) where user.isNamed(by: subject): return
        case .value(let subject) where subject.isEmpty: report.add(.subjectMismatch, "sub is empty")
        case .value: report.add(.subjectMismatch, "sub is not the user of this request")
        case .absent: report.add(.subjectMismatch, "sub is absent")
        case .malformed: return
        }
    }
}
