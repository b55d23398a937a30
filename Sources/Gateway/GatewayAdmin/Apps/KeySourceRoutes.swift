internal import CountersignCore
internal import CountersignJOSE
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel
internal import GatewayStorage

/// The external JWK Set that an app follows.
struct KeySourceRoutes: Sendable {
    let registry: AppRegistry

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/key-source", .viewer, "Show which published JWK Set an app follows",
                .json(Self.source.shape)
            ) { call in
                try answer(call)
            },
            AdminRoute(
                "PUT", "/apps/{app}/key-source", .operator,
                "Follow a published JWK Set, whose keys verify tokens beside the app's own",
                body: .object([
                    .must("url", .text(longest: 2_048)), .may("allow_private", .bool),
                    .ignored("keys", .any), .ignored("fetched_ms", .any), .ignored("problem", .any),
                ]), match: .required, .json(Self.source.shape)
            ) { call in
                let body = try call.body()
                try call.changing { call in
                    try call.checkMatch(try Self.tagged(call))
                    let url = try body.text("url")
                    let allowsPrivate = body.value("allow_private") ?? false
                    if allowsPrivate {
                        let source = try call.directory.settingIfSet(KeySource.self, of: call[0])
                        try call.checkPrivateAddress(url, before: source?.privateURL)
                    }
                    try call.directory.setKeySource(
                        url: url, allowsPrivateAddresses: allowsPrivate, of: call[0])
                }
                return try answer(call)
            },
            AdminRoute(
                "DELETE", "/apps/{app}/key-source", .operator, "Stop following a published JWK Set",
                match: .optional, .nothing
            ) { call in
                try call.changing { call in
                    try call.checkMatch(try Self.tagged(call))
                    try call.directory.setKeySource(url: nil, of: call[0])
                }
                return call.noContent
            },
        ]
    }

    private struct Shown {
        let source: KeySource?
        let published: PublishedKeys?
    }

    private static let source = AnswerShape<Shown>(
        named: "KeySource", .init("url", \.source?.url),
        .init("allow_private") { $0.source?.allowsPrivateAddresses ?? false },
        .init("keys") { $0.published?.keys.map(\.thumbprint) ?? [] },
        .time("fetched_ms") { $0.published?.fetchedAt.map { Milliseconds(seconds: $0).count } },
        .init("problem") { $0.published?.problem })

    /// The operator's settings; null for an app without a key source.
    private static func tagged(_ call: AdminCall) throws -> JSONValue {
        try call.directory.settingIfSet(KeySource.self, of: call[0])?.json ?? .null
    }

    private func answer(_ call: AdminCall) throws -> HTTPResponse {
        var source = try call.directory.settingIfSet(KeySource.self, of: call[0])
        // The state of a previous source does not apply.
        let published = registry.publishedKeys(of: call[0]).flatMap { $0.source == source ? $0 : nil }
        if let url = source?.url { source?.url = try call.userMask().destination(url) }
        return call.answer(
            Self.source.json(Shown(source: source, published: published)), tag: source?.json ?? .null)
    }
}
