public import CountersignBloomreach

/// When a token for push notifications is told to the server.
public typealias TokenTrackFrequency = PushTokenFrequency

extension Exponea {
    /// The project of the app, as version 4 of ExponeaSDK has it.
    public struct ProjectSettings: Sendable, Equatable {
        /// Names the project.
        public let projectToken: String
        /// The project's API key.
        public let authorization: Authorization
        /// The server; nil for the vendor's.
        public let baseUrl: String?
        /// Further projects that get copies of what is tracked.
        public let projectMapping: [EventType: [ExponeaProject]]?

        /// Makes settings.
        ///
        /// - Parameters:
        ///   - projectToken: Names the project.
        ///   - authorization: The project's API key.
        ///   - baseUrl: The server; nil for the vendor's.
        ///   - projectMapping: Further projects that get copies of what is tracked.
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

    /// What is done with push notifications.
    public struct PushNotificationTracking: Sendable {
        let appGroup: String?
        let frequency: TokenTrackFrequency

        /// The app hands over its token with `trackPushToken(_:)`.
        public static let disabled = PushNotificationTracking(appGroup: nil, frequency: .onTokenChange)

        /// As `disabled`: this SDK does not hook into the app's delegate.
        ///
        /// - Parameters:
        ///   - appGroup: Has no effect, which is logged: each extension has its own queue.
        ///   - requirePushAuthorization: Has no effect: the app hands over a token when it wants that told.
        ///   - tokenTrackFrequency: When the same token is told again.
        /// - Returns: The setting.
        public static func enabled(
            appGroup: String, requirePushAuthorization: Bool = true,
            tokenTrackFrequency: TokenTrackFrequency = .onTokenChange
        ) -> PushNotificationTracking {
            PushNotificationTracking(appGroup: appGroup, frequency: tokenTrackFrequency)
        }
    }

    /// Whether sessions follow the app's coming and going.
    public struct AutomaticSessionTracking: Sendable {
        let isEnabled: Bool
        let timeout: Double

        /// Yes.
        ///
        /// - Parameter timeout: Seconds in the background that a session survives.
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
        ///   - maxRetries: Has no effect: no event is dropped for having failed often.
        public init(mode: FlushingMode, maxRetries: Int = 5) {
            self.mode = mode
        }
    }

    /// Starts the SDK, as version 4 of ExponeaSDK does.
    ///
    /// - Parameters:
    ///   - settings: The project.
    ///   - pushNotificationTracking: What is done with push notifications.
    ///   - automaticSessionTracking: Whether sessions follow the app's coming and going.
    ///   - defaultProperties: Properties that every event gets.
    ///   - inAppContentBlocksPlaceholders: Has no effect, which is logged: the SDK shows nothing.
    ///   - flushingSetup: When events are sent.
    ///   - allowDefaultCustomerProperties: Whether customer updates get the default properties too; nil for yes.
    ///   - advancedAuthEnabled: Whether the App Inbox is opened by customer tokens; nil for no.
    ///   - manualSessionAutoClose: Whether `trackSessionStart()` also ends an earlier session that has timed out.
    ///   - applicationID: The app among those of the project.
    public func configure(
        _ settings: ProjectSettings, pushNotificationTracking: PushNotificationTracking,
        automaticSessionTracking: AutomaticSessionTracking = .enabled(),
        defaultProperties: [String: any JSONConvertible]? = nil,
        inAppContentBlocksPlaceholders: [String]? = nil, flushingSetup: FlushingSetup = .default,
        allowDefaultCustomerProperties: Bool? = nil, advancedAuthEnabled: Bool? = nil,
        manualSessionAutoClose: Bool = true, applicationID: String? = nil
    ) {
        configure(
            Surroundings(
                appGroup: pushNotificationTracking.appGroup,
                inAppContentBlocksPlaceholders: inAppContentBlocksPlaceholders,
                pushTokenFrequency: pushNotificationTracking.frequency,
                sessions: automaticSessionTracking, manualSessionAutoClose: manualSessionAutoClose,
                applicationID: applicationID),
            projectToken: settings.projectToken, projectMapping: settings.projectMapping,
            authorization: settings.authorization, baseUrl: settings.baseUrl,
            defaultProperties: defaultProperties,
            allowDefaultCustomerProperties: allowDefaultCustomerProperties,
            advancedAuthEnabled: advancedAuthEnabled, flushingMode: flushingSetup.mode)
    }

    /// What the forms of `configure` have beside the project and its properties.
    struct Surroundings {
        var appGroup: String?
        var inAppContentBlocksPlaceholders: [String]?
        var pushTokenFrequency = TokenTrackFrequency.onTokenChange
        var sessions = AutomaticSessionTracking.enabled()
        var manualSessionAutoClose = true
        var applicationID: String?

        func apply(to configuration: inout BloomreachConfiguration) {
            configuration.automaticSessionTracking = sessions.isEnabled
            configuration.sessionTimeout = sessions.timeout
            configuration.manualSessionAutoClose = manualSessionAutoClose
            configuration.pushTokenFrequency = pushTokenFrequency
            configuration.applicationID = applicationID
            configuration.given = [
                appGroup.map { _ in "appGroup" },
                inAppContentBlocksPlaceholders.map { _ in "inAppContentBlocksPlaceholders" },
            ].compactMap(\.self)
        }
    }
}
