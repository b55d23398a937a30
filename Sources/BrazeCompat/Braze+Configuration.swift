internal import Countersign
package import Foundation

extension Braze {
    /// How a `Braze` instance works.
    public final class Configuration {
        /// Where and how requests go.
        public struct Api: Sendable {
            /// The key that names the app.
            public let key: String
            /// The server's host name, or a URL.
            public let endpoint: String
            /// Whether the current user's signature goes with each request.
            public var sdkAuthentication = false

            init(key: String, endpoint: String) {
                self.key = key
                self.endpoint = endpoint
            }
        }

        /// Where and how requests go.
        public var api: Api

        /// As `CountersignConfiguration.dataDirectory`.
        package var dataDirectory: URL?

        /// Makes a configuration.
        ///
        /// - Parameters:
        ///   - apiKey: The key that names the app.
        ///   - endpoint: The server's host name, such as `sdk.example.com`, or a URL with `http` or `https`.
        public init(apiKey: String, endpoint: String) {
            api = Api(key: apiKey, endpoint: endpoint)
        }

        func makeClient() throws -> CountersignClient {
            let hasScheme = ["http://", "https://"].contains { api.endpoint.hasPrefix($0) }
            let text = hasScheme ? api.endpoint : "https://\(api.endpoint)"
            guard let url = URL(string: text) else {
                throw CountersignError(.invalidConfiguration, "endpoint must be a host name or a URL")
            }
            var configuration = CountersignConfiguration(endpoint: url, writeKey: api.key)
            configuration.instanceName = "braze"
            configuration.dataDirectory = dataDirectory
            return try CountersignClient(
                configuration: configuration,
                dialect: BrazeDialect(
                    endpoint: url, apiKey: api.key, signsRequests: api.sdkAuthentication,
                    timeout: configuration.requestTimeout))
        }
    }
}
