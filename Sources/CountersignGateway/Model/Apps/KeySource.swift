internal import CountersignCore

/// Where an app's keys are published as a JWK Set (RFC 7517, section 5).
struct KeySource: Sendable, Equatable {
    /// An `https` URL.
    let url: String
    /// True when the address may be one of a private network, or of this machine.
    let allowsPrivateAddresses: Bool

    /// The source as the audit log and the admin API have it.
    var json: JSONValue { ["url": .string(url), "allow_private": .bool(allowsPrivateAddresses)] }
}
