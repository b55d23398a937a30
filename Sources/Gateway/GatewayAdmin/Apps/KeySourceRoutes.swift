internal import CountersignCore
internal import CountersignJOSE
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel
internal import GatewayStorage

struct KeySourceRoutes: Sendable {
    let registry: AppRegistry

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/key-source", .viewer, "Show which published keys an app follows",
                .json(Self.shape)
            ) { try answer($0) },
            AdminRoute(
                "PUT", "/apps/{app}/key-source", .operator,
                "Set the JWK Sets and OpenID providers whose published keys also verify tokens",
                body: .object([
                    .may("sources", .list(.object(Self.taken))), .may("url", .text(longest: 2_048)),
                    .may("allow_private", .bool),
                ]), match: .required, .json(Self.shape)
            ) { call in
                let body = try call.body()
                try call.changing { call in
                    let before = try Self.sources(call)
                    try call.checkMatch(before.json)
                    var sources = KeySources([])
                    // Clients of earlier versions send one source as the members of the body.
                    sources.set(
                        body.members["sources"] == nil
                            ? ["sources": .array([.object(body.members)])] : body.members)
                    for source in sources.all where source.allowsPrivateAddresses {
                        try call.checkPrivateAddress(
                            source.url,
                            before: before.allowsPrivateAddresses(of: source.url) ? source.url : nil)
                    }
                    try call.directory.setKeySources(sources, of: call[0])
                }
                return try answer(call)
            },
            AdminRoute.delete(
                "/apps/{app}/key-source", .operator, "Stop following published keys", match: .optional
            ) { call in
                try call.changing { call in
                    try call.checkMatch(try Self.sources(call).json)
                    try call.directory.setKeySources(KeySources([]), of: call[0])
                }
            },
        ]
    }

    private struct Resource {
        let source: KeySource
        let published: RemoteJWKSet?
    }

    private static let source = AnswerShape<Resource>(
        named: "KeySource", .init("url", \.source.url),
        .init("allow_private", \.source.allowsPrivateAddresses),
        .init("issuer", \.source.issuer),
        .init("keys") { $0.published?.keys.map(\.thumbprint) ?? [] },
        .time("fetched_ms") { $0.published?.fetchedAt.map { Milliseconds(seconds: $0).count } },
        .init("problem") { $0.published?.problem })

    private static let shape = JSONShape.all(["sources": .list(source.shape)])

    /// A source in the body of a change. Ignores the members that only responses have.
    private static let taken: [JSONMember] =
        [.must("url", .text(longest: 2_048)), .may("allow_private", .bool)]
        + ["issuer", "keys", "fetched_ms", "problem"].map { .ignored($0, .any) }

    private static func sources(_ call: AdminCall) throws -> KeySources {
        try call.directory.setting(KeySources.self, of: call[0])
    }

    private func answer(_ call: AdminCall) throws -> HTTPResponse {
        let sources = try Self.sources(call)
        let published = registry.publishedKeys(of: call[0])
        let mask = try call.userMask()
        var masked = sources
        for index in masked.all.indices { masked.all[index].url = mask.destination(masked.all[index].url) }
        let shown = zip(sources.all, masked.all).map { source, masked in
            // Ignores the state of a source that was replaced but is still loaded.
            Self.source.json(Resource(source: masked, published: published.first { $0.source == source }))
        }
        // A tag of the unmasked URLs would let a viewer confirm a guessed URL.
        return call.answer(["sources": .array(shown)], tag: masked.json)
    }
}
