internal import CountersignCore
internal import Foundation

/// Where an app's keys are published as a JWK Set (RFC 7517, section 5).
struct KeySource: Sendable, Equatable {
    /// An `https` URL.
    var url: String
    /// True when the address may be one of a private network, or of this machine.
    var allowsPrivateAddresses: Bool

    /// The URL, if its address may be private.
    var privateURL: String? { allowsPrivateAddresses ? url : nil }
}

extension KeySource: AppSetting {
    static let settingName = "key_source"
    static let mayBeMissing = true

    static func standard(for appID: String) -> KeySource {
        KeySource(url: "", allowsPrivateAddresses: false)
    }

    static let fields: [SettingField<KeySource>] = [
        .text("url", \.url, longest: 2_048), .bool("allow_private", \.allowsPrivateAddresses),
    ]

    func check() throws(GatewayError) {
        guard let parts = URLComponents(string: url), parts.scheme == "https", parts.host?.isEmpty == false,
            parts.user == nil, parts.password == nil, parts.fragment == nil
        else {
            throw GatewayError(.invalid, "the address of a JWK Set is an https URL without user and fragment")
        }
    }
}
