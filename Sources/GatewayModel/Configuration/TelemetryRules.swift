/// Where a gateway exports its metrics and traces.
package struct TelemetryRules: Sendable {
    /// The collector's base URL, without a slash at the end.
    package var endpoint: String
    /// What each request to it has beside what it must have; may be secret.
    package var headers: [(name: String, value: String)] = []
    /// PEM file with the certificates to trust instead of the system's; nil trusts the system's.
    package var certificateAuthorityFile: String?
    /// The share of traces recorded that begin at the gateway, from 0 to 1.
    package var sampleRatio = 0.01

    package init(endpoint: String) {
        self.endpoint = endpoint
    }
}
