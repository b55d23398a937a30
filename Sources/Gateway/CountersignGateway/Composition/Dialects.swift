internal import CountersignCore
internal import Foundation
internal import GatewayDelivery
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel
internal import GatewayStorage

enum Dialects {
    static func all(
        _ configuration: GatewayConfiguration, storage: any Storage, apps: AppRegistry, stores: Stores,
        tokens: TokenService, polls: LongPolls, outbound: OutboundPool,
        gateways: @escaping @Sendable () -> Int, now: @escaping @Sendable () -> Date,
        others: (RequestPath) -> [any Dialect]
    ) throws(GatewayError) -> [any Dialect] {
        let limits = configuration.limits
        let path = RequestPath(
            apps: apps, store: stores.events, parsers: ParserPool(limits: limits), limits: limits,
            appLimiter: RateLimiter(rate: limits.requestsPerSecondPerApp, sharers: gateways), now: now)
        let control = try storage.openControl(as: .account)
        let own: [any Dialect] = [
            NativeDialect(
                path: path, publicURL: configuration.publicURL, isSecure: configuration.tls != nil),
            BrazeDialect(path: path),
            GeolocationDialect(path: path, tokens: tokens),
            BloomreachDialect(
                path: path, customers: stores.customers, webhooks: WebhookSender(on: outbound, now: now)),
            OAuthEndpoints(service: tokens),
            FollowingDialect(
                log: storage.log, consumers: stores.consumers, polls: polls, apps: apps,
                parsers: ParserPool(limits: limits, maximumNameBytes: 64),
                limiter: RateLimiter(rate: limits.requestsPerSecondPerApp, sharers: gateways),
                access: access(by: control, now: now), audit: audit(by: control, now: now)),
        ]
        return own + others(path)
    }

    private static func access(
        by directory: AppDirectory, now: @escaping @Sendable () -> Date
    ) -> @Sendable (String) throws -> ReaderAccess {
        { text in
            let milliseconds = Milliseconds(now()).count
            guard let token = try directory.apiTokens.token(text, at: milliseconds) else { return .unknown }
            return token.appID.map { .app($0) } ?? .nothing
        }
    }

    /// Writes a change made with a reader's token to the audit log, under the admin API's name of the action.
    private static func audit(
        by directory: AppDirectory, now: @escaping @Sendable () -> Date
    ) -> FollowingDialect.Audit {
        { text, action, consumer, after in
            guard let token = try directory.apiTokens.token(text, at: Milliseconds(now()).count) else {
                return
            }
            let actor = Operator(name: "token:\(token.name)#\(token.id)", role: "reader")
            try directory.acting(as: actor).auditLog.note(
                action, consumer.name, app: consumer.appID, after: after)
        }
    }
}
