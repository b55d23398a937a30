internal import CountersignCore
internal import CountersignJOSE

extension ClaimsPolicy: AppSetting {
    static let settingName = "policy"
    private static let mostTexts = 8

    static func standard(for appID: String) -> ClaimsPolicy { ClaimsPolicy() }

    static let fields: [JSONField<ClaimsPolicy>] = [
        JSONField(
            "algorithms", shown: algorithmNames, taken: .may("algorithms", algorithmNames),
            get: { .array($0.algorithms.map { .string($0.rawValue) }) },
            set: { policy, value in
                if let names = [String](jsonValue: value) {
                    policy.algorithms = names.map { JWSAlgorithm(rawValue: $0) }
                }
            }),
        .member("leeway_seconds", \.leeway, .number),
        .optional("maximum_lifetime_seconds", \.maximumLifetime),
        texts("audience", \.audiences), texts("issuer", \.issuers),
        .member("typ", \.types, .list(.choice(["JWT", "at+jwt"]))),
        .member("user_claim", \.userClaim, .text(longest: 256)),
        .member("kept_claims", \.keptClaims, .list(.text(longest: 256))),
        JSONField(
            "required", shown: claimNames, taken: .may("required", claimNames),
            get: { policy in
                .array(
                    [
                        (policy.requiresAudience, "aud"), (policy.requiresIssuer, "iss"),
                        (policy.requiresType, "typ"),
                    ].filter(\.0).map { .string($0.1) })
            },
            set: { policy, value in
                let names = [String](jsonValue: value) ?? []
                policy.requiresAudience = names.contains("aud")
                policy.requiresIssuer = names.contains("iss")
                policy.requiresType = names.contains("typ")
            }),
    ]

    /// Texts of which a token must contain one; empty for any. Earlier versions had one text or null.
    private static func texts(
        _ name: String, _ path: JSONField<ClaimsPolicy>.Path<[String]>
    ) -> JSONField<ClaimsPolicy> {
        JSONField(
            name, shown: .list(.string), taken: .may(name, .listOrOne(.text(longest: 512))),
            get: { $0[keyPath: path].jsonValue },
            // Gateways of an earlier version, which share a database during an update, read one text.
            keep: { policy in
                let texts = policy[keyPath: path]
                return texts.count > 1 ? texts.jsonValue : texts.first.jsonValue
            },
            set: { policy, value in
                let texts = [String](jsonValue: value) ?? String(jsonValue: value).map { [$0] } ?? []
                policy[keyPath: path] = texts.filter { !$0.isEmpty }
            })
    }

    private static let algorithmNames = JSONShape.list(.choice(JWSAlgorithm.all.map(\.rawValue)))
    private static let claimNames = JSONShape.list(.choice(["aud", "iss", "typ"]))

    func check() throws(GatewayError) {
        guard (0...300).contains(leeway) else {
            throw GatewayError(.invalid, "the leeway must be 0 to 300 seconds")
        }
        guard !algorithms.isEmpty else {
            throw GatewayError(.invalid, "an app must allow at least one algorithm; RS256 is the default")
        }
        if let maximumLifetime, !(maximumLifetime > 0 && maximumLifetime.isFinite) {
            throw GatewayError(.invalid, "the maximum lifetime must be more than 0 seconds")
        }
        for (claim, isRequired, accepted, name) in [
            ("aud", requiresAudience, audiences, "audience"), ("iss", requiresIssuer, issuers, "issuer"),
        ] {
            guard accepted.count <= Self.mostTexts else {
                throw GatewayError(.invalid, "an app accepts at most \(Self.mostTexts) values of \(claim)")
            }
            if isRequired, accepted.isEmpty {
                throw GatewayError(
                    .invalid, "\(claim) cannot be required without an expected \(name): set one")
            }
        }
        guard !types.isEmpty else {
            throw GatewayError(.invalid, "an app must accept at least one typ; JWT is the default")
        }
        guard keptClaims.count <= Self.mostTexts, BytewiseSet(keptClaims).count == keptClaims.count,
            keptClaims.allSatisfy({ !$0.isEmpty && !$0.utf8.contains(UInt8(ascii: "=")) })
        else {
            throw GatewayError(
                .invalid,
                "kept_claims must be at most \(Self.mostTexts) different names of claims, without an equals sign"
            )
        }
        guard !userClaim.isEmpty else {
            throw GatewayError(
                .invalid, "user_claim must name the claim with the user id; sub is the default")
        }
    }
}
