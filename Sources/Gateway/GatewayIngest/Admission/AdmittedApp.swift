internal import CountersignCore
internal import CountersignCrypto
package import CountersignJOSE
package import GatewayModel

/// An app's settings for admission: a consistent snapshot of keys, policy and enforcement.
package final class AdmittedApp: Sendable {
    package let id: String
    package let enforcement: Enforcement
    let rampPercent: Int
    /// Whether enforcement returns to `optional` automatically (``EnforcementPlan/Return``).
    package let returnsByItself: Bool
    package let verifier: TokenVerifier
    package let project: Project
    package let tokenRules: TokenRules
    package let issued: IssuedTokens
    /// The result of ``digest(_:published:project:tokenRules:plan:)`` for the values that the app was loaded from.
    let loaded: [UInt8]
    /// Not part of `loaded`, because a change must not discard the cache of verified tokens.
    let restrictions: UserRestrictions?
    private let derivations = Lock<[ObjectIdentifier: any Sendable]>([:])

    init(
        _ app: App, published: [KeyRing.Entry], project: Project, cache: VerifiedTokenCache,
        tokenRules: TokenRules, issued: IssuedTokens, plan: EnforcementPlan = EnforcementPlan()
    ) {
        restrictions = nil
        rampPercent = plan.rampPercent
        returnsByItself = plan.autoReturn != nil
        self.tokenRules = tokenRules
        self.issued = issued
        self.project = project
        id = app.id
        enforcement = app.enforcement
        loaded = Self.digest(app, published: published, project: project, tokenRules: tokenRules, plan: plan)
        verifier = TokenVerifier(
            keys: KeyRing(
                entries: app.keys.map { KeyRing.Entry(id: $0.id, text: $0.text) },
                published: published),
            policy: app.policy, cache: cache)
    }

    init(_ app: AdmittedApp, restrictions: UserRestrictions?) {
        id = app.id
        enforcement = app.enforcement
        rampPercent = app.rampPercent
        returnsByItself = app.returnsByItself
        verifier = app.verifier
        project = app.project
        tokenRules = app.tokenRules
        issued = app.issued
        loaded = app.loaded
        self.restrictions = restrictions
    }

    /// The digest of the values that an app is loaded from. If the digest is unchanged after a reload, the app
    /// in memory and its cache of verified tokens stay in use.
    static func digest(
        _ app: App, published: [KeyRing.Entry], project: Project, tokenRules: TokenRules,
        plan: EnforcementPlan
    ) -> [UInt8] {
        let value: JSONValue = [
            "id": .string(app.id), "created_ms": .integer(app.createdMilliseconds),
            "enforcement": .string(app.enforcement.rawValue), "policy": app.policy.kept,
            "keys": .array(app.keys.map { .array([.string($0.id), .string($0.text)]) }),
            "published": .array(
                published.map { .array([($0.key?.jwk).jsonValue, $0.issuers.jsonValue]) }),
            "token_rules": tokenRules.kept, "ramp_percent": .integer(Int64(plan.rampPercent)),
            "returns": .bool(plan.autoReturn != nil), "project": project.settings.kept,
            "customer_keys": .array(
                project.customerTokenKeys.map { key in
                    .array([.string(key.id), .string(Base64URL.encode(key.secret))])
                }),
            "items": .array(
                [project.inAppMessages, project.consentCategories].map { .array($0.map(\.json)) }),
            "inbox_epoch": .integer(project.inbox.epoch),
            "inbox": .array(
                project.inbox.all.map { message in
                    .array([
                        .string(message.id), .integer(message.revision), .string(message.type),
                        .string(Base64URL.encode(message.content)), .integer(message.createdMilliseconds),
                        message.expiresMilliseconds.map { .integer($0) } ?? .null,
                        message.recipient.map { .array([.string($0.name), .string($0.value)]) } ?? .null,
                    ])
                }),
        ]
        return SHA256.digest(value.bytes)
    }

    /// Returns a value that a dialect derives from the app. Computed at the first use of the type `Value`, and
    /// again after the app has changed. `make` runs under a lock, so it must not call this method.
    package func derived<Value: Sendable>(_ make: (AdmittedApp) -> Value) -> Value {
        derivations.withLock { derivations in
            let key = ObjectIdentifier(Value.self)
            if let value = derivations[key] as? Value { return value }
            let value = make(self)
            derivations[key] = value
            return value
        }
    }

    /// The enforcement for a request. The ramp applies only to requests with exactly one user. Otherwise one
    /// user outside the ramp would exempt the other users of the request.
    func enforcement(of userIDs: [String]) -> Enforcement {
        guard enforcement == .required, rampPercent < 100, let user = userIDs.first, userIDs.count == 1 else {
            return enforcement
        }
        return EnforcementPlan.isRamped(user, of: id, percent: rampPercent) ? .required : .optional
    }
}
