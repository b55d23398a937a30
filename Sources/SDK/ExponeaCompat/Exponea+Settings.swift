public import CountersignBloomreach
internal import CountersignCore
internal import CountersignDelivery

/// When a push token is sent to the server.
public typealias TokenTrackFrequency = PushTokenFrequency

extension Exponea {
    /// The project of the app, as version 4 of ExponeaSDK has it.
    public struct ProjectSettings: Sendable, Equatable {
        /// The project's token.
        public let projectToken: String
        /// The project's API key.
        public let authorization: Authorization
        /// The server; nil for the vendor's.
        public let baseUrl: String?
        /// Further projects that receive copies of tracked data.
        public let projectMapping: [EventType: [ExponeaProject]]?

        /// Makes settings.
        ///
        /// - Parameters:
        ///   - projectToken: The project's token.
        ///   - authorization: The project's API key.
        ///   - baseUrl: The server; nil for the vendor's.
        ///   - projectMapping: Further projects that receive copies of tracked data.
        public init(
            projectToken: String, authorization: Authorization, baseUrl: String? = nil,
            projectMapping: [EventType: [ExponeaProject]]? = nil
        ) {
            self.projectToken = projectToken
            self.authorization = authorization
            self.baseUrl = baseUrl
            self.projectMapping = projectMapping
        }
    }

    /// The tracking of push notifications.
    public struct PushNotificationTracking: Sendable {
        let appGroup: String?
        let frequency: TokenTrackFrequency

        /// The app passes its token to `trackPushToken(_:)`.
        public static let disabled = PushNotificationTracking(appGroup: nil, frequency: .onTokenChange)

        /// As `disabled`: this SDK does not hook into the app's delegate.
        ///
        /// - Parameters:
        ///   - appGroup: Has no effect, which is logged: each extension has its own queue.
        ///   - requirePushAuthorization: Has no effect: the app decides when to pass a token.
        ///   - tokenTrackFrequency: When the same token is sent again.
        /// - Returns: The setting.
        public static func enabled(
            appGroup: String, requirePushAuthorization: Bool = true,
            tokenTrackFrequency: TokenTrackFrequency = .onTokenChange
        ) -> PushNotificationTracking {
            PushNotificationTracking(appGroup: appGroup, frequency: tokenTrackFrequency)
        }
    }

    /// Whether sessions follow the app's lifecycle.
    public struct AutomaticSessionTracking: Sendable {
        let isEnabled: Bool
        let timeout: Double

        /// Sessions follow the app's lifecycle.
        ///
        /// - Parameter timeout: Seconds in the background after which a session times out.
        /// - Returns: The setting.
        public static func enabled(timeout: Double = 60) -> AutomaticSessionTracking {
            AutomaticSessionTracking(isEnabled: true, timeout: timeout)
        }

        /// The app calls `trackSessionStart()` and `trackSessionEnd()`.
        public static let disabled = AutomaticSessionTracking(isEnabled: false, timeout: 60)
    }

    /// When events are sent.
    public struct FlushingSetup: Sendable {
        let mode: FlushingMode

        /// At once.
        public static let `default` = FlushingSetup(mode: .immediate)

        /// Makes a setting.
        ///
        /// - Parameters:
        ///   - mode: When events are sent.
        ///   - maxRetries: Has no effect: events are not dropped after repeated failures.
        public init(mode: FlushingMode, maxRetries: Int = 5) {
            self.mode = mode
        }
    }

    /// Starts the SDK, as version 4 of ExponeaSDK does.
    ///
    /// - Parameters:
    ///   - settings: The project.
    ///   - pushNotificationTracking: The tracking of push notifications.
    ///   - automaticSessionTracking: Whether sessions follow the app's lifecycle.
    ///   - defaultProperties: Properties added to events, except push tokens and campaign clicks.
    ///   - inAppContentBlocksPlaceholders: Has no effect, which is logged: the SDK shows nothing.
    ///   - flushingSetup: When events are sent.
    ///   - allowDefaultCustomerProperties: Whether customer updates get the default properties too; nil for yes.
    ///   - advancedAuthEnabled: Whether App Inbox requests carry customer tokens; nil for no.
    ///   - manualSessionAutoClose: Whether `trackSessionStart()` also ends an earlier session that has timed out.
    ///   - applicationID: The ID of this app in the project.
    public func configure(
        _ settings: ProjectSettings, pushNotificationTracking: PushNotificationTracking,
        automaticSessionTracking: AutomaticSessionTracking = .enabled(),
        defaultProperties: [String: any JSONConvertible]? = nil,
        inAppContentBlocksPlaceholders: [String]? = nil, flushingSetup: FlushingSetup = .default,
        allowDefaultCustomerProperties: Bool? = nil, advancedAuthEnabled: Bool? = nil,
        manualSessionAutoClose: Bool = true, applicationID: String? = nil
    ) {
        let project = ExponeaProject(
            baseUrl: settings.baseUrl, projectToken: settings.projectToken,
            authorization: settings.authorization)
        let isStarting = attempt { () throws(CountersignError) in
            var configuration = BloomreachConfiguration(project: try project.project())
            configuration.projectMapping = try Self.mapping(
                settings.projectMapping, baseURL: settings.baseUrl)
            configuration.defaultProperties = JSONObject((defaultProperties ?? [:]).mapValues(\.jsonValue))
            configuration.allowDefaultCustomerProperties = allowDefaultCustomerProperties ?? true
            configuration.advancedAuthEnabled = advancedAuthEnabled ?? false
            configuration.authorizationProvider = authorizationProvider
            configuration.flushPolicy = flushingSetup.mode.policy
            configuration.automaticSessionTracking = automaticSessionTracking.isEnabled
            configuration.sessionTimeout = automaticSessionTracking.timeout
            configuration.manualSessionAutoClose = manualSessionAutoClose
            configuration.pushTokenFrequency = pushNotificationTracking.frequency
            configuration.applicationID = applicationID
            configuration.given = [
                pushNotificationTracking.appGroup.map { _ in "appGroup" },
                inAppContentBlocksPlaceholders.map { _ in "inAppContentBlocksPlaceholders" },
            ].compactMap(\.self)
            return configuration
        }
        if isStarting, flushingSetup.mode != flushingMode { flushingMode = flushingSetup.mode }
    }
}
