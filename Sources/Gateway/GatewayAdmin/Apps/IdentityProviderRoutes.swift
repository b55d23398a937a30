internal import CountersignCore
internal import CountersignJOSE
internal import GatewayModel

struct IdentityProviderRoutes: Sendable {
    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/identity-providers", .viewer, "List the identity providers with a known policy",
                .json(.page(of: Self.provider.shape))
            ) { call in
                call.answer(all: IdentityProvider.all, Self.provider)
            },
            AdminRoute(
                "GET", "/identity-providers/{id}", .viewer,
                "Show the policy and key source for a tenant of an identity provider",
                query: [
                    .may("tenant", .text(longest: 200)), .may("audience", .text(longest: 512)),
                    .may("allow_private", .choice(["true"])),
                ],
                .json(
                    .all(["policy": .named("Policy", .object(ClaimsPolicy.shown)), "key_source": .string]))
            ) { call in
                guard let provider = IdentityProvider.all.first(where: { $0.id == call[0] }) else {
                    let known = IdentityProvider.all.map(\.id).joined(separator: ", ")
                    throw AdminProblem.notFound("the known identity providers are \(known)")
                }
                var policy = ClaimsPolicy()
                var source = try provider.fill(
                    &policy, tenant: call.query("tenant") ?? "", audience: call.query("audience"))
                source.allowsPrivateAddresses = call.query("allow_private") != nil
                try source.check()
                return call.answer(["policy": policy.json, "key_source": .string(source.url)])
            },
        ]
    }

    private static let provider = AnswerShape<IdentityProvider>(
        named: "IdentityProvider", .init("id", \.id), .init("name", \.name),
        .init("documentation", \.documentation), .init("tenant_example", \.tenantExample),
        .init("audience", \.audienceHelp), .init("audience_required", \.needsAudience))
}
