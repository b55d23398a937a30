internal import CountersignCore

/// A URL at which keys of an app are published: a JWK Set (RFC 7517, section 5), or the metadata of an
/// OpenID provider, which names its JWK Set (OpenID Connect Discovery 1.0, section 4).
package struct KeySource: Sendable, Equatable {
    /// An `https` URL.
    package var url: String
    /// Whether the URL may resolve to an address of a private network or of this machine.
    package var allowsPrivateAddresses: Bool

    package init(url: String, allowsPrivateAddresses: Bool) {
        self.url = url
        self.allowsPrivateAddresses = allowsPrivateAddresses
    }

    private static let metadataPath = "/.well-known/openid-configuration"

    /// The issuer of an OpenID provider's metadata, without a final `/`; nil for a JWK Set.
    package var issuer: String? {
        let path = Self.metadataPath.utf8
        guard url.utf8.suffix(path.count).elementsEqual(path) else { return nil }
        return String(url.utf8.dropLast(path.count))
    }

    package func check() throws(GatewayError) {
        try OutgoingURL.check(url, allowsPrivateAddresses: allowsPrivateAddresses, takesPlainHTTP: false)
    }
}

extension KeySource: SettingPart {
    package static let fields: [JSONField<KeySource>] = [
        .url("url", \.url), .bool("allow_private", \.allowsPrivateAddresses),
    ]
}

package struct KeySources: Sendable {
    /// The sources in the order in which an operator added them.
    package var all: [KeySource]

    package init(_ all: [KeySource]) {
        self.all = all
    }

    package func allowsPrivateAddresses(of url: String) -> Bool {
        all.contains { $0.url == url && $0.allowsPrivateAddresses }
    }
}

extension KeySources: AppSetting {
    package static let settingName = "key_source"
    package static let mayBeMissing = true
    /// The maximum number of sources of an app. A token with an unknown key can cause a fetch of each source.
    package static let most = 4

    package static func standard(for appID: String) -> KeySources { KeySources([]) }

    package static let fields: [JSONField<KeySources>] = [
        JSONField(
            "sources", shown: .list(.object(KeySource.shown)),
            taken: .must("sources", .list(.object(KeySource.taken))),
            get: { .array($0.all.map(\.json)) },
            audit: { .array($0.all.map(\.audited)) },
            set: { sources, value in
                guard case .array(let elements) = value else { return }
                sources.all = elements.compactMap(\.members).map { members in
                    var source = KeySource(url: "", allowsPrivateAddresses: false)
                    source.set(members)
                    return source
                }
            }),
        // Earlier versions stored one source in these two fields. Gateways of those versions read the first source.
        JSONField(
            "url", shown: nil, taken: nil, get: { ($0.all.first?.url).jsonValue },
            set: { sources, value in
                guard sources.all.isEmpty, let url = String(jsonValue: value) else { return }
                sources.all = [KeySource(url: url, allowsPrivateAddresses: false)]
            }),
        JSONField(
            "allow_private", shown: nil, taken: nil,
            get: { ($0.all.first?.allowsPrivateAddresses).jsonValue },
            set: { sources, value in
                guard let allows = Bool(jsonValue: value), !sources.all.isEmpty else { return }
                sources.all[0].allowsPrivateAddresses = allows
            }),
    ]

    package func check() throws(GatewayError) {
        guard all.count <= Self.most else {
            throw GatewayError(
                .invalid, "an app follows at most \(Self.most) key sources: unfollow one first")
        }
        guard BytewiseSet(all.map(\.url)).count == all.count else {
            throw GatewayError(.invalid, "the app follows this key source already", member: "url")
        }
        for source in all { try source.check() }
    }
}
