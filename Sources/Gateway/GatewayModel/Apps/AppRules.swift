internal import CountersignCore

/// Rules of an app other than its token settings.
public struct AppRules: Sendable, Equatable {
    /// Origins of the web pages that may call the app, such as `https://shop.example`. `*` allows every page, and
    /// an empty list allows no page.
    public var origins: [String] = []
    /// The maximum age of events in days. The gateway deletes older events; nil sets no limit.
    public var retentionDays: Int?
    /// The maximum bytes of the app's events. Above it, the gateway deletes the oldest events; nil sets no limit.
    public var retentionBytes: Int?

    /// No allowed origins and no limits on retention.
    public init() {}
}

extension AppRules: AppSetting {
    package static let settingName = "rules"
    package static let action = "app.rules"

    package static func standard(for appID: String) -> AppRules { AppRules() }

    package static let fields: [JSONField<AppRules>] = [
        JSONField(
            "origins", at: \.origins, shown: .list(.string),
            taken: .may("origins", .list(.text(longest: 300)))),
        .optional("retention_days", \.retentionDays, .integer(1...36_500)),
        .optional("retention_bytes", \.retentionBytes, .integer(1...(1 << 50))),
    ]

    /// Rejects origins that no browser sends, because they would match nothing. Accepts the origins in `known`,
    /// which an earlier version may have stored.
    package func checkOrigins(besides known: [String]) throws(GatewayError) {
        for origin in origins where !known.contains(origin) { try Self.check(origin) }
    }

    private static func check(_ text: String) throws(GatewayError) {
        guard text != "*", let fault = WebOrigin.fault(in: text) else { return }
        throw GatewayError(
            .invalid,
            "\(fault); an origin is * or a scheme, a host and maybe a port as browsers send them, such as "
                + "https://shop.example, http://localhost:3000 or capacitor://localhost", member: "origins")
    }
}
