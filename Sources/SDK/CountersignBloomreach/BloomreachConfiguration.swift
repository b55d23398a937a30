public import CountersignCore
public import Foundation

/// The configuration of a `BloomreachClient`.
public struct BloomreachConfiguration: Sendable {
    /// The project of the app.
    public var project: BloomreachProject
    /// Further projects that receive copies of tracked data, by the kind of tracking (`BloomreachEventKind`).
    public var projectMapping: [BloomreachEventKind: [BloomreachProject]] = [:]
    /// Whether App Inbox requests carry a customer token instead of the API key.
    public var advancedAuthEnabled = false
    /// The source of customer tokens; nil for a class named `ExponeaAuthProvider`. Ignored without
    /// `advancedAuthEnabled`.
    public var authorizationProvider: CustomerTokenProvider?
    /// The source of signed-user tokens for queries under the API key; nil for none.
    ///
    /// Countersign's gateway returns a customer's attributes and App Inbox only with such a token, whose `sub` is the
    /// `registered` ID. Called for each query that names the customer by more than the cookie. If it returns nil, the
    /// query is sent with the key alone.
    public var userTokenProvider: CustomerTokenProvider?
    /// Time limit for a request's token, in seconds. Default: 30.
    public var authorizationProviderTimeout: TimeInterval = 30
    /// Properties added to events, except push tokens and campaign clicks, and to customer updates if
    /// `allowDefaultCustomerProperties` is true. Properties of a call take precedence.
    public var defaultProperties: JSONObject = [:]
    /// Whether customer updates get the default properties. Default: true.
    public var allowDefaultCustomerProperties = true
    /// The facts about the app and the device that each event carries, as properties.
    public var context = EventContext()
    /// The platform reported to the server: `ios` or `android`.
    public var platform = "ios"
    /// The app's ID within the project; nil to leave it out.
    public var applicationID: String?
    /// Whether sessions follow the app's lifecycle notifications (iOS). Otherwise the app calls `startSession()` and
    /// `endSession()`. Default: true.
    public var automaticSessionTracking = true
    /// Seconds in the background after which a session times out. Default: 60.
    public var sessionTimeout: TimeInterval = 60
    /// Whether `startSession()` also records the end of an earlier session that has timed out. Default: true.
    public var manualSessionAutoClose = true
    /// When a push token is sent to the server. Default: when it has changed.
    public var pushTokenFrequency = PushTokenFrequency.onTokenChange
    /// When the SDK sends without a call of `flush()`. Default: at once.
    public var flushPolicy = FlushPolicy(eventCount: 1, interval: nil, onBackground: true)
    /// Distinguishes clients of one app, each with its own queue. Letters, digits, `-`, `_` and, not first, `.`.
    public var instanceName = "bloomreach"
    /// The parent of the directories of all instances; nil for the default of `CountersignConfiguration`.
    public var dataDirectory: URL?
    /// The limits of the queue.
    public var limits = QueueLimits()
    /// Further header fields of each request, for example for a proxy. The client throws for a field that the SDK sets.
    public var headers: [String: String] = [:]
    /// Time limit for a request, in seconds. Default: 30.
    public var requestTimeout: TimeInterval = 30
    /// The lowest level that is logged. Setting it replaces `log` by the system's log on Apple platforms and standard
    /// error elsewhere; nil disables logging. Default: warnings.
    public var logLevel: CountersignLog.Level? = .warning {
        didSet { log = logLevel.map { .standard($0) } }
    }
    /// Receives the log lines; nil for no logging. Default: the log that `logLevel` describes.
    public var log: CountersignLog? = .standard(.warning)
    /// Names of settings without effect, to be logged.
    package var given: [String] = []
    package var wording = AuthorizationProviderDiscovery.Wording.ios

    /// Makes a configuration with the defaults.
    ///
    /// - Parameter project: The project of the app.
    public init(project: BloomreachProject) {
        self.project = project
    }

    /// Logs each setting without effect once, with the reason.
    func logSettingsWithoutEffect() {
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
        "flushMaxRetries": "the SDK retries events without a limit",
        "flushEventMaxRetries": "the SDK retries events without a limit",
        "appGroup": "each app extension has its own queue",
        "requirePushAuthorization": "the app passes its push token to trackPushToken",
        "automaticPushNotificationTracking": "the app passes its push token to trackPushToken",
        "automaticPushNotifications": "the app passes its push token to trackPushToken",
        "inAppContentBlocksPlaceholders": "the SDK has no UI",
        "inAppContentBlockPlaceholdersAutoLoad": "the SDK has no UI",
        "isDarkModeEnabled": "the SDK has no UI", "appInboxDetailImageInset": "the SDK has no UI",
        "allowWebViewCookies": "the SDK has no UI",
        "httpLoggingLevel": "logLevel selects what is logged",
        "streamId": "the gateway has projects and no streams; give projectToken",
        "android": "the SDK does not display notifications",
    ]

    var folder: InstanceFolder {
        InstanceFolder(name: instanceName, dataDirectory: dataDirectory, key: project.token)
    }

    var deliverySettings: DeliverySettings {
        var settings = DeliverySettings(directory: folder.directory)
        settings.limits = limits
        settings.flushPolicy = flushPolicy
        settings.headers = headers
        settings.requestTimeout = requestTimeout
        settings.sessionTimeout = sessionTimeout
        settings.log = log
        // One event for each request: a batch response does not show which events were accepted.
        settings.batchEvents = 1
        return settings
    }
}

/// Kinds of tracking, as keys of a project mapping. The values are those of the vendor's SDKs.
public struct BloomreachEventKind: RawRepresentable, Hashable, Sendable {
    /// A word such as `TRACK_EVENT`.
    public let rawValue: String

    /// Creates a value from its word. Words that this version does not define are allowed.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// An installation, or the start with a new anonymous customer.
    public static let install = BloomreachEventKind(rawValue: "INSTALL")
    /// A session began.
    public static let sessionStart = BloomreachEventKind(rawValue: "SESSION_START")
    /// A session ended.
    public static let sessionEnd = BloomreachEventKind(rawValue: "SESSION_END")
    /// A push token was set or became invalid.
    public static let pushToken = BloomreachEventKind(rawValue: "PUSH_TOKEN")
    /// An interaction with a message of the App Inbox.
    public static let appInbox = BloomreachEventKind(rawValue: "APP_INBOX")

    static let recorded: Set = [
        "INSTALL", "SESSION_START", "SESSION_END", "PUSH_TOKEN", "APP_INBOX", "TRACK_EVENT",
        "TRACK_CUSTOMER", "CAMPAIGN_CLICK", "PAYMENT",
    ]
    /// A custom event of the app.
    public static let trackEvent = BloomreachEventKind(rawValue: "TRACK_EVENT")
    /// An update of a customer.
    public static let trackCustomer = BloomreachEventKind(rawValue: "TRACK_CUSTOMER")
    /// A click on a campaign's link.
    public static let campaignClick = BloomreachEventKind(rawValue: "CAMPAIGN_CLICK")
    /// A payment.
    public static let payment = BloomreachEventKind(rawValue: "PAYMENT")
}
