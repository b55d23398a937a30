internal import CountersignCore
internal import CountersignJOSE

extension ClaimsPolicy: AppSetting {
    static let settingName = "policy"

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
        .optional("audience", \.audience, .text(longest: 512)),
        .optional("issuer", \.issuer, .text(longest: 512)),
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
        for (claim, isRequired, value, name) in [
            ("aud", requiresAudience, audience, "audience"), ("iss", requiresIssuer, issuer, "issuer"),
        ] where isRequired && value?.isEmpty ?? true {
            throw GatewayError(
                .invalid, "\(claim) cannot be required without an expected \(name): set one")
        }
    }
}
