internal import CountersignCore
package import CountersignJOSE

/// An identity provider, with values from the provider's documentation.
package struct IdentityProvider: Sendable {
    enum Audience: Sendable {
        /// An audience that the operator must give. The text describes it.
        case required(String)
        /// An audience that is checked if the operator gives it. The text describes it.
        case optional(String)
        /// An audience that is the same for all apps of a tenant: the tenant, or a fixed value.
        case known(String)
    }

    package let id: String
    package let name: String
    package let documentation: String
    package let tenantExample: String
    /// The text that the name of every tenant contains, such as `/realms/`; empty if the names have no common text.
    /// `fill` rejects tenants without the text.
    let tenantPart: String
    let audience: Audience
    /// The `iss` of tokens. `{tenant}` stands for the tenant, and `{region}` for its part before `_`.
    let issuer: String
    let keySource: String
    var algorithms: [JWSAlgorithm] = [.rs256]
    var types = ["JWT"]
    var userClaim = "sub"

    /// A description of the audience that the operator gives; nil if the audience is known.
    package var audienceHelp: String? {
        switch audience {
        case .required(let help), .optional(let help): help
        case .known: nil
        }
    }

    package var needsAudience: Bool { if case .required = audience { true } else { false } }

    /// Sets the provider's values in a policy. Throws `invalid` for a malformed tenant or a missing audience.
    package func fill(
        _ policy: inout ClaimsPolicy, tenant: String, audience given: String?
    ) throws(GatewayError) -> KeySource {
        // The id of a Google project that belongs to an organization, such as `example.com:shop`, also has a dot.
        let unexpected = ["/", tenant.contains(":") ? "/" : "."].filter { !tenantExample.contains($0) }
        guard (1...200).contains(tenant.utf8.count),
            [tenant.utf8.first, tenant.utf8.last].allSatisfy({ $0?.isASCIIAlphanumeric(or: "") == true }),
            tenant.utf8.allSatisfy({ $0.isASCIIAlphanumeric(or: ".-_:/") }),
            !(unexpected + ["//", "..", ":/"]).contains(where: { tenant.contains($0) }),
            tenantPart.isEmpty || tenant.contains(tenantPart)
        else {
            throw GatewayError(
                .invalid, "the tenant of \(name) is given like \(tenantExample), without https://",
                member: "tenant")
        }
        switch audience {
        case .known(let known): policy.audiences = [filled(known, tenant)]
        case .required(let help):
            guard let given else {
                throw GatewayError(.invalid, "an audience is missing: \(help)", member: "audience")
            }
            policy.audiences = [given]
        case .optional: policy.audiences = given.map { [$0] } ?? []
        }
        policy.issuers = [filled(issuer, tenant)]
        policy.requiresIssuer = true
        policy.requiresAudience = !policy.audiences.isEmpty
        policy.requiresType = false
        policy.algorithms = algorithms
        policy.types = types
        policy.userClaim = userClaim
        return KeySource(url: filled(keySource, tenant), allowsPrivateAddresses: false)
    }

    private func filled(_ template: String, _ tenant: String) -> String {
        let region = String(decoding: tenant.utf8.prefix { $0 != UInt8(ascii: "_") }, as: UTF8.self)
        return template.replacing("{tenant}", with: tenant).replacing("{region}", with: region)
    }

    private static let metadata = "/.well-known/openid-configuration"

    package static let all = [
        IdentityProvider(
            id: "auth0", name: "Auth0",
            documentation: "https://auth0.com/docs/secure/tokens/access-tokens/validate-access-tokens",
            tenantExample: "example.eu.auth0.com", tenantPart: ".",
            audience: .required("the identifier of your API; the client id for ID tokens"),
            issuer: "https://{tenant}/", keySource: "https://{tenant}" + metadata, types: ["JWT", "at+jwt"]),
        IdentityProvider(
            id: "cognito", name: "Amazon Cognito",
            documentation:
                "https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-tokens-verifying-a-jwt.html",
            tenantExample: "eu-west-1_AbCdEfGhI", tenantPart: "_",
            audience: .optional(
                "the app client's id; then only ID tokens are accepted, because access tokens have no aud"),
            issuer: "https://cognito-idp.{region}.amazonaws.com/{tenant}",
            keySource: "https://cognito-idp.{region}.amazonaws.com/{tenant}" + metadata),
        IdentityProvider(
            id: "firebase", name: "Firebase Authentication",
            documentation: "https://firebase.google.com/docs/auth/admin/verify-id-tokens",
            tenantExample: "my-project", tenantPart: "", audience: .known("{tenant}"),
            issuer: "https://securetoken.google.com/{tenant}",
            keySource: "https://securetoken.google.com/{tenant}" + metadata),
        IdentityProvider(
            id: "supabase", name: "Supabase",
            documentation: "https://supabase.com/docs/guides/auth/jwts",
            tenantExample: "abcdefghijklmnopqrst", tenantPart: "", audience: .known("authenticated"),
            issuer: "https://{tenant}.supabase.co/auth/v1",
            keySource: "https://{tenant}.supabase.co/auth/v1/.well-known/jwks.json",
            algorithms: [.es256, .rs256]),
        IdentityProvider(
            id: "clerk", name: "Clerk",
            documentation: "https://clerk.com/docs/guides/sessions/manual-jwt-verification",
            tenantExample: "clerk.example.com", tenantPart: ".",
            audience: .optional("the aud of your JWT template; session tokens have none"),
            issuer: "https://{tenant}", keySource: "https://{tenant}/.well-known/jwks.json"),
        IdentityProvider(
            id: "okta", name: "Okta",
            documentation: "https://developer.okta.com/docs/guides/validate-access-tokens/",
            tenantExample: "example.okta.com/oauth2/default", tenantPart: "/oauth2/",
            audience: .required("the audience of your authorization server, such as api://default"),
            issuer: "https://{tenant}", keySource: "https://{tenant}" + metadata, userClaim: "uid"),
        IdentityProvider(
            id: "entra", name: "Microsoft Entra",
            documentation: "https://learn.microsoft.com/en-us/entra/identity-platform/access-tokens",
            tenantExample: "aaaabbbb-0000-cccc-1111-dddd2222eeee", tenantPart: "-",
            audience: .required("the client id of your API, whose tokens have version 2"),
            issuer: "https://login.microsoftonline.com/{tenant}/v2.0",
            keySource: "https://login.microsoftonline.com/{tenant}/v2.0" + metadata, userClaim: "oid"),
        IdentityProvider(
            id: "keycloak", name: "Keycloak",
            documentation: "https://www.keycloak.org/securing-apps/oidc-layers",
            tenantExample: "id.example.com/realms/shop", tenantPart: "/realms/",
            audience: .required("the client that an audience mapper adds to aud, such as account"),
            issuer: "https://{tenant}", keySource: "https://{tenant}" + metadata, types: ["JWT", "at+jwt"]),
    ]
}
