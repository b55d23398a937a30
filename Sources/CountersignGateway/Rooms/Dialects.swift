internal import Foundation
internal import GatewayAdmission
internal import GatewayDialects
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayTokens

/// The languages that clients speak.
enum Dialects {
    static func all(
        _ configuration: GatewayConfiguration, apps: AppRegistry, stores: Stores, tokens: TokenService,
        now: @escaping @Sendable () -> Date, others: (RequestPath) -> [any Dialect]
    ) -> [any Dialect] {
        let limits = configuration.limits
        let path = RequestPath(
            apps: apps, store: stores.events, parsers: ParserPool(limits: limits), limits: limits,
            appLimiter: RateLimiter(rate: limits.requestsPerSecondPerApp), now: now)
        let own: [any Dialect] = [
            NativeDialect(
                path: path, publicURL: configuration.publicURL, isSecure: configuration.tls != nil),
            BrazeDialect(path: path),
            GeolocationDialect(path: path, tokens: tokens),
            BloomreachDialect(
                path: path, customers: stores.customers, webhooks: WebhookSender(now: now)),
            OAuthEndpoints(service: tokens),
        ]
        return own + others(path)
    }
}
