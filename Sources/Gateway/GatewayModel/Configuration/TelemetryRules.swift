package struct TelemetryRules: Sendable {
    package var endpoint: String
    /// Additional header fields of each request; may be secret.
    package var headers: [(name: String, value: String)] = []
    /// A PEM file of certificates to trust instead of the system's; nil trusts the system's.
    package var certificateAuthorityFile: String?
    /// The share of recorded traces, from 0 to 1, of all traces that begin at the gateway.
    package var sampleRatio = 0.01

    package init(endpoint: String) {
        self.endpoint = endpoint
    }
}
