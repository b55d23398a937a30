internal import CountersignCore
internal import CountersignJOSE
internal import GatewayAdmission
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// A JWK Set that somebody else publishes for an app.
struct KeySourceRoutes: Sendable {
    let registry: AppRegistry

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/key-source", .viewer, "Show which published JWK Set an app follows",
                .json(Self.source)
            ) { call in
                try answer(call)
            },
            AdminRoute(
                "PUT", "/apps/{app}/key-source", .operator,
                "Let the keys of a published JWK Set verify beside an app's own",
                body: .object([
                    .must("url", .text(longest: 2_048)), .may("allow_private", .bool),
                    .ignored("keys", .any), .ignored("fetched_ms", .any), .ignored("problem", .any),
                ]), match: .required, .json(Self.source)
            ) { call in
                let body = try call.body()
                try call.checkMatch(try Self.tagged(call))
                let url = try body.text("url")
                let allowsPrivate = body.bool("allow_private") ?? false
                if allowsPrivate {
                    let source = try call.directory.settingIfSet(KeySource.self, of: call[0])
                    try call.checkPrivateAddress(url, before: source?.privateURL)
                }
                try call.directory.setKeySource(
                    url: url, allowsPrivateAddresses: allowsPrivate, of: call[0])
                return try answer(call)
            },
            AdminRoute(
                "DELETE", "/apps/{app}/key-source", .operator, "No longer follow a published JWK Set",
                match: .optional, .nothing
            ) { call in
                try call.checkMatch(try Self.tagged(call))
                try call.directory.setKeySource(url: nil, of: call[0])
                return call.noContent
            },
        ]
    }

    private static let source = JSONShape.named(
        "KeySource",
        .all([
            "url": .nullable(.string), "allow_private": .bool, "keys": .list(.string),
            "fetched_ms": .nullable(.milliseconds), "problem": .nullable(.string),
        ]))

    /// What an operator sets; not there for an app that follows none.
    private static func tagged(_ call: AdminCall) throws -> JSONValue {
        try call.directory.settingIfSet(KeySource.self, of: call[0])?.json ?? .null
    }

    private func answer(_ call: AdminCall) throws -> HTTPResponse {
        let source = try call.directory.settingIfSet(KeySource.self, of: call[0])
        // What is known of another URL says nothing of this one.
        let published = registry.publishedKeys(of: call[0]).flatMap { $0.source == source ? $0 : nil }
        return call.answer(
            [
                "url": source.map { .string($0.url) } ?? .null,
                "allow_private": .bool(source?.allowsPrivateAddresses ?? false),
                "keys": .array((published?.keys ?? []).map { .string($0.thumbprint) }),
                "fetched_ms": published?.fetchedAt.map { .integer(Int64($0 * 1000)) } ?? .null,
                "problem": published?.problem.map { .string($0) } ?? .null,
            ], tag: source?.json ?? .null)
    }
}
