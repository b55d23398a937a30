internal import CountersignBloomreach
internal import CountersignDelivery
internal import Foundation

/// A project: the app's main project, or a further project that receives copies.
public struct ExponeaProject: Sendable, Equatable {
    /// The server; nil for the server of the main project.
    public let baseUrl: String?
    /// The project's token.
    public let projectToken: String
    /// The project's authorization.
    public let authorization: Authorization

    /// Makes a project.
    ///
    /// - Parameters:
    ///   - baseUrl: The server; nil for the main project's server. For the main project nil means the vendor's.
    ///   - projectToken: The project's token.
    ///   - authorization: The project's authorization.
    public init(baseUrl: String? = nil, projectToken: String, authorization: Authorization) {
        self.baseUrl = baseUrl
        self.projectToken = projectToken
        self.authorization = authorization
    }

    func project(defaultBaseURL: String? = nil) throws(CountersignError) -> BloomreachProject {
        try BloomreachProject(
            token: projectToken, apiKey: authorization.apiKey, baseURL: baseUrl ?? defaultBaseURL)
    }
}

/// Kinds of tracking, as keys of a project mapping.
public enum EventType: String, Sendable, CaseIterable {
    /// The app was installed.
    case install = "INSTALL"
    /// A session began.
    case sessionStart = "SESSION_START"
    /// A session ended.
    case sessionEnd = "SESSION_END"
    /// A custom event of the app.
    case customEvent = "TRACK_EVENT"
    /// An update of a customer.
    case identifyCustomer = "TRACK_CUSTOMER"
    /// A payment.
    case payment = "PAYMENT"
    /// A token for push notifications.
    case registerPushToken = "PUSH_TOKEN"
    /// A push notification was received.
    case pushDelivered = "PUSH_DELIVERED"
    /// A push notification was opened.
    case pushOpened = "PUSH_OPENED"
    /// A click on a campaign's link.
    case campaignClick = "CAMPAIGN_CLICK"
    /// An interaction with an in-app message.
    case banner = "BANNER"
    /// An interaction with a message of the App Inbox.
    case appInbox = "APP_INBOX"

    /// A token for push notifications, as the vendor's newer SDKs name it.
    case notificationState = "NOTIFICATION_STATE"

    var kind: BloomreachEventKind {
        self == .notificationState ? .pushToken : BloomreachEventKind(rawValue: rawValue)
    }
}

/// When events are sent.
public enum FlushingMode: Sendable, Equatable {
    /// When the app calls `flushData()`.
    case manual
    /// When the app goes to the background.
    case automatic
    /// At this interval in seconds while events wait, and when the app goes to the background.
    case periodic(Int)
    /// At once.
    case immediate

    var policy: FlushPolicy {
        switch self {
        case .manual: .manual
        case .automatic: FlushPolicy(eventCount: nil, interval: nil, onBackground: true)
        case .periodic(let seconds):
            FlushPolicy(eventCount: nil, interval: TimeInterval(max(1, seconds)), onBackground: true)
        case .immediate: FlushPolicy(eventCount: 1, interval: nil, onBackground: true)
        }
    }
}
