public import CountersignCore
public import Foundation

/// How a `BloomreachClient` works.
public struct BloomreachConfiguration: Sendable {
    /// The project of the app.
    public var project: BloomreachProject
    /// Further projects that get copies of what is tracked, by the kind of tracking (`BloomreachEventKind`).
    public var projectMapping: [BloomreachEventKind: [BloomreachProject]] = [:]
    /// Whether App Inbox requests carry a customer token instead of the API key.
    public var advancedAuthEnabled = false
    /// Where customer tokens come from; nil for a class named `ExponeaAuthProvider`. Ignored without
    /// `advancedAuthEnabled`.
    public var authorizationProvider: CustomerTokenProvider?
    /// Seconds that a request waits for its customer token. Default: 30.
    public var authorizationProviderTimeout: TimeInterval = 30
    /// Properties that every event gets, and every customer update too if `allowDefaultCustomerProperties`. What a call
    /// passes wins.
    public var defaultProperties: JSONObject = [:]
    /// Whether customer updates get the default properties. Default: true.
    public var allowDefaultCustomerProperties = true
    /// What the server takes this device for: `ios` or `android`.
    public var platform = "ios"
    /// The app among those of the project; nil to leave it out.
    public var applicationID: String?
    /// Whether sessions begin and end with the app's coming to the front and its going to the background, where a system
    /// says so (iOS). Otherwise the app calls `startSession()` and `endSession()`. Default: true.
    public var automaticSessionTracking = true
    /// Seconds in the background that a session survives. Default: 60.
    public var sessionTimeout: TimeInterval = 60
    /// Whether `startSession()` also records the end of an earlier session that has timed out. Default: true.
    public var manualSessionAutoClose = true
    /// When a token for push notifications is told to the server. Default: when it is another one.
    public var pushTokenFrequency = PushTokenFrequency.onTokenChange
    /// When the SDK sends on its own. Default: at once.
    public var flushPolicy = FlushPolicy(eventCount: 1, interval: nil, onBackground: true)
    /// As `CountersignConfiguration.instanceName`.
    public var instanceName = "bloomreach"
    /// As `CountersignConfiguration.dataDirectory`.
    public var dataDirectory: URL?
    /// How much the queue keeps.
    public var limits = QueueLimits()
    /// Seconds that a request may take. Default: 30.
    public var requestTimeout: TimeInterval = 30
    /// How much is written to the standard log (`CountersignLog.standard(_:)`), which setting this puts into `log`; nil for
    /// nothing. Default: warnings.
    public var logLevel: CountersignLog.Level? = .warning {
        didSet { log = logLevel.map { .standard($0) } }
    }
    /// Where log lines go; nil for nowhere. Default: warnings, to the standard log.
    public var log: CountersignLog? = .standard(.warning)
    /// The names of settings that were given and have no effect here.
    package var given: [String] = []
    /// Whose words say what is wrong with a provider.
    package var wording = AuthorizationProviderDiscovery.Wording.ios

    /// Makes a configuration with the defaults.
    ///
    /// - Parameter project: The project of the app.
    public init(project: BloomreachProject) {
        self.project = project
    }

    /// Says once for each setting without effect why it has none.
    func logWhatHasNoEffect() {
        for name in given.sorted() {
            let reason = name.split(separator: ".").lazy.compactMap { Self.withoutEffect[String($0)] }.first
            log?.write(.warning, "\(name) has no effect: \(reason ?? "there is no such setting")", [:])
        }
        for kind in projectMapping.keys.map(\.rawValue).sorted()
        where !BloomreachEventKind.recorded.contains(kind) {
            log?.write(
                .warning, "projectMapping of \(kind) has no effect: the SDK records nothing of that kind", [:]
            )
        }
    }

    private static let withoutEffect = [
        "flushMaxRetries": "no event is dropped for having failed often",
        "flushEventMaxRetries": "no event is dropped for having failed often",
        "appGroup": "each extension has a queue of its own",
        "requirePushAuthorization": "the app hands over its token with trackPushToken",
        "automaticPushNotificationTracking": "the app hands over its token with trackPushToken",
        "automaticPushNotifications": "the app hands over its token with trackPushToken",
        "inAppContentBlocksPlaceholders": "the SDK shows nothing",
        "inAppContentBlockPlaceholdersAutoLoad": "the SDK shows nothing",
        "isDarkModeEnabled": "the SDK shows nothing", "appInboxDetailImageInset": "the SDK shows nothing",
        "allowWebViewCookies": "the SDK shows nothing",
        "httpLoggingLevel": "logLevel says how much is logged",
        "streamId": "the gateway has projects and no streams; give projectToken",
        "android": "it is about notifications, which the SDK does not show",
    ]

    var folder: InstanceFolder {
        InstanceFolder(name: instanceName, dataDirectory: dataDirectory, key: project.token)
    }

    var deliverySettings: DeliverySettings {
        var settings = DeliverySettings(directory: folder.directory)
        settings.limits = limits
        settings.flushPolicy = flushPolicy
        settings.requestTimeout = requestTimeout
        settings.sessionTimeout = sessionTimeout
        settings.log = log
        // One event a request: the server has no batches that say which of their events it took.
        settings.batchEvents = 1
        return settings
    }
}

/// What is tracked, as keys of a project mapping; the words are those of the vendor's SDKs.
public struct BloomreachEventKind: RawRepresentable, Hashable, Sendable {
    /// A word such as `TRACK_EVENT`.
    public let rawValue: String

    /// Any word.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// The app was installed, or starts over with another customer.
    public static let install = BloomreachEventKind(rawValue: "INSTALL")
    /// A session began.
    public static let sessionStart = BloomreachEventKind(rawValue: "SESSION_START")
    /// A session ended.
    public static let sessionEnd = BloomreachEventKind(rawValue: "SESSION_END")
    /// A token for push notifications came or is no more good.
    public static let pushToken = BloomreachEventKind(rawValue: "PUSH_TOKEN")
    /// Something was done with a message of the App Inbox.
    public static let appInbox = BloomreachEventKind(rawValue: "APP_INBOX")

    /// Those that the SDK records something of.
    static let recorded: Set = [
        "INSTALL", "SESSION_START", "SESSION_END", "PUSH_TOKEN", "APP_INBOX", "TRACK_EVENT",
        "TRACK_CUSTOMER", "CAMPAIGN_CLICK", "PAYMENT",
    ]
    /// An event of the app's own.
    public static let trackEvent = BloomreachEventKind(rawValue: "TRACK_EVENT")
    /// An update of a customer.
    public static let trackCustomer = BloomreachEventKind(rawValue: "TRACK_CUSTOMER")
    /// A click on a campaign's link.
    public static let campaignClick = BloomreachEventKind(rawValue: "CAMPAIGN_CLICK")
    /// A payment.
    public static let payment = BloomreachEventKind(rawValue: "PAYMENT")
}
