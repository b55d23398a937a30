package import Countersign
public import CountersignDelivery
package import CountersignTransport
public import Foundation

extension Braze {
    /// The configuration of a `Braze` instance.
    public final class Configuration {
        /// The server and the authentication of requests.
        public struct Api: Sendable {
            /// The app's API key.
            public let key: String
            /// The server's host name, or a URL.
            public let endpoint: String
            /// Whether each request carries the signature of its user.
            public var sdkAuthentication = false
            /// When events are sent.
            public var requestPolicy = RequestPolicy.automatic

            /// When events are sent.
            public enum RequestPolicy: Sendable {
                /// Automatically.
                case automatic
                /// When the app calls `requestImmediateDataFlush()`.
                case manual
            }

            init(key: String, endpoint: String) {
                self.key = key
                self.endpoint = endpoint
            }
        }

        /// The server and the authentication of requests.
        public var api: Api

        /// The log level and the receiver of log lines.
        public var logger = Logger()

        /// Seconds in the background after which a new session begins.
        public var sessionTimeout: TimeInterval = 10

        /// The facts about the app and the device that each event carries. An addition to BrazeKit's API.
        public var context = EventContext()

        /// The parent of the queue's directory; nil for the default of `CountersignConfiguration`.
        package var dataDirectory: URL?
        package var adjust: (inout CountersignConfiguration) -> Void = { _ in }
        package var transport: (any HTTPTransport)?
        package var clock: any ClientClock = SystemClock()

        /// Creates a configuration.
        ///
        /// - Parameters:
        ///   - apiKey: The app's API key.
        ///   - endpoint: The server's host name, such as `sdk.example.com`, or a URL with `http` or `https`.
        public init(apiKey: String, endpoint: String) {
            api = Api(key: apiKey, endpoint: endpoint)
        }

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
                    endpoint: url, apiKey: api.key, timeout: configuration.requestTimeout,
                    context: context),
                scheme: scheme,
                transport: transport, clock: clock)
        }
    }
}

extension Braze.Configuration {
    /// The log level and the receiver of log lines.
    public final class Logger {
        /// A log level.
        public enum Level: UInt8, Sendable, Comparable, CaseIterable {
            /// Everything.
            case debug
            /// Errors and the actions of the SDK.
            case info
            /// Errors and lost events.
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

        /// The log level.
        public var level = Level.error
        /// Receives log lines. Return true to also write the line to the system's log or the standard error stream.
        /// Called on threads of the SDK.
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
