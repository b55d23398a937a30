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
    public var defaultProperties: [String: JSONValue] = [:]
    /// Whether customer updates get the default properties. Default: true.
    public var allowDefaultCustomerProperties = true
    /// What the server takes this device for: `ios` or `android`.
    public var platform = "ios"
    /// The app among those of the project; nil to leave it out.
    public var applicationID: String?
    /// When the SDK sends by itself. Default: at once.
    public var flushPolicy = FlushPolicy(eventCount: 1, interval: nil, onBackground: true)
    /// As `CountersignConfiguration.instanceName`.
    public var instanceName = "bloomreach"
    /// As `CountersignConfiguration.dataDirectory`.
    public var dataDirectory: URL?
    /// How much the queue keeps.
    public var limits = QueueLimits()
    /// Seconds that a request may take. Default: 30.
    public var requestTimeout: TimeInterval = 30
    /// Where log lines go; nil for nowhere.
    public var log: CountersignLog?
    /// Whose words say what is wrong with a provider.
    package var wording = AuthorizationProviderDiscovery.Wording.ios

    /// Makes a configuration with the defaults.
    ///
    /// - Parameter project: The project of the app.
    public init(project: BloomreachProject) {
        self.project = project
    }

    func makeClientConfiguration() -> CountersignConfiguration {
        var configuration = CountersignConfiguration(endpoint: project.baseURL, writeKey: project.token)
        configuration.instanceName = instanceName
        configuration.dataDirectory = dataDirectory
        configuration.limits = limits
        configuration.flushPolicy = flushPolicy
        configuration.requestTimeout = requestTimeout
        configuration.log = log
        // One event a request: the server has no batches that say which of their events it took.
        configuration.batchEvents = 1
        return configuration
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

    /// An event of the app's own.
    public static let trackEvent = BloomreachEventKind(rawValue: "TRACK_EVENT")
    /// An update of a customer.
    public static let trackCustomer = BloomreachEventKind(rawValue: "TRACK_CUSTOMER")
    /// A click on a campaign's link.
    public static let campaignClick = BloomreachEventKind(rawValue: "CAMPAIGN_CLICK")
    /// A payment.
    public static let payment = BloomreachEventKind(rawValue: "PAYMENT")
}
