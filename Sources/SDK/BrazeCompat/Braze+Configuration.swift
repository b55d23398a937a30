package import Countersign
internal import CountersignDelivery
package import CountersignTransport
public import Foundation

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
            /// When requests are made.
            public var requestPolicy = RequestPolicy.automatic

            /// When requests are made.
            public enum RequestPolicy: Sendable {
                /// By itself.
                case automatic
                /// When the app calls `requestImmediateDataFlush()`.
                case manual
            }

            init(key: String, endpoint: String) {
                self.key = key
                self.endpoint = endpoint
            }
        }

        /// Where and how requests go.
        public var api: Api

        /// What is logged, and where.
        public var logger = Logger()

        /// Seconds in the background that a session survives.
        public var sessionTimeout: TimeInterval = 10

        /// As `CountersignConfiguration.dataDirectory`.
        package var dataDirectory: URL?
        /// For tests: other ways of the client.
        package var adjust: (inout CountersignConfiguration) -> Void = { _ in }
        package var transport: (any HTTPTransport)?
        package var clock: any ClientClock = SystemClock()

        /// Makes a configuration.
        ///
        /// - Parameters:
        ///   - apiKey: The key that names the app.
        ///   - endpoint: The server's host name, such as `sdk.example.com`, or a URL with `http` or `https`.
        public init(apiKey: String, endpoint: String) {
            api = Api(key: apiKey, endpoint: endpoint)
        }

        /// How the current user's signature stands in a request.
        var scheme: Credential.Scheme {
            api.sdkAuthentication ? .field("X-Braze-Auth-Signature") : .withheld
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
            configuration.sessionTimeout = sessionTimeout
            configuration.flushPolicy = api.requestPolicy == .manual ? .manual : .automatic
            configuration.log = logger.log
            adjust(&configuration)
            return try CountersignClient(
                configuration: configuration,
                dialect: BrazeDialect(
                    endpoint: url, apiKey: api.key, timeout: configuration.requestTimeout),
                scheme: scheme,
                transport: transport, clock: clock)
        }
    }
}

extension Braze.Configuration {
    /// What is logged, and where.
    public final class Logger {
        /// How much is logged.
        public enum Level: UInt8, Sendable, Comparable, CaseIterable {
            /// Everything.
            case debug
            /// What the SDK does.
            case info
            /// What was lost or goes wrong.
            case error
            /// Nothing.
            case disabled

            // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
            public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }

            var logLevel: CountersignLog.Level {
                switch self {
                case .debug: .debug
                case .info: .info
                case .error, .disabled: .warning
                }
            }
        }

        /// How much is logged. Default: what was lost or goes wrong.
        public var level = Level.error
        /// Takes a line instead of the system's log or the standard error stream; true lets it go there as well. Called on
        /// threads of the SDK.
        public var print: (@Sendable (_ message: String, _ level: Level) -> Bool)?

        init() {}

        var log: CountersignLog? {
            guard level != .disabled else { return nil }
            let standard = CountersignLog.standard(level.logLevel)
            guard let print else { return standard }
            return CountersignLog(isEnabled: { [minimum = level.logLevel] in $0 >= minimum }) {
                level, message, values in
                let words = CountersignLog.line(message, values)
                let ownLevel: Level =
                    switch level {
                    case .debug: .debug
                    case .info: .info
                    case .warning: .error
                    }
                if print(words, ownLevel) { standard.write(level, message, values) }
            }
        }

        func write(_ level: Level, _ message: String) {
            log?.write(level.logLevel, message, [:])
        }
    }
}
