internal import Foundation

/// What an operator allows and keeps for an app beside its tokens.
public struct AppRules: Sendable, Equatable {
    /// Web pages that may call the app, such as `https://shop.example`; `*` is every page. Empty: none.
    public var origins: [String] = []
    /// Events older than this many days are deleted; nil keeps them.
    public var retentionDays: Int?
    /// The oldest events are deleted while the app's events have more bytes than this; nil keeps them.
    public var retentionBytes: Int?

    /// No page, and everything is kept.
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

    package func check() throws(GatewayError) {
        guard origins.allSatisfy(Self.isOrigin) else { throw Self.noOrigin }
    }

    /// Refuses origins that no browser sends, which would match nothing. Those that were stored before this was checked stay.
    package func checkOrigins(besides known: [String]) throws(GatewayError) {
        for origin in origins where !known.contains(origin) && !Self.isSent(origin) { throw Self.noOrigin }
    }

    private static var noOrigin: GatewayError {
        GatewayError(
            .invalid,
            "an origin must be * or look like https://shop.example or http://localhost:3000: as browsers send it, "
                + "in lower case, without its scheme's default port, and with a non-ASCII host as xn--",
            member: "/origins")
    }

    /// RFC 6454, section 6.2: scheme, host and port, nothing else.
    private static func isOrigin(_ text: String) -> Bool {
        if text == "*" { return true }
        guard let url = URLComponents(string: text), url.scheme == "https" || url.scheme == "http",
            let host = url.host, !host.isEmpty, url.path.isEmpty, url.query == nil, url.fragment == nil,
            url.user == nil, url.hasUsablePort, text == text.lowercased(), !text.contains(" ")
        else { return false }
        return true
    }

    private static func isSent(_ text: String) -> Bool {
        if text == "*" { return true }
        guard URLComponents.hasASCIIHost(text), let url = URLComponents(string: text) else { return false }
        guard let port = url.port else { return !text.hasSuffix(":") }
        return port != (url.scheme == "https" ? 443 : 80) && text.hasSuffix(":\(port)")
    }
}
