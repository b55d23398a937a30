internal import Foundation

/// An endpoint of Bloomreach Engagement that the SDK calls, always with `POST` (source: the authorization pages of
/// the vendor's iOS and Flutter SDKs).
public enum BloomreachEndpoint: String, Sendable, CaseIterable {
    /// `POST /track/v2/projects/<projectToken>/customers`: an update of a customer.
    case trackCustomer
    /// `POST /track/v2/projects/<projectToken>/customers/events`: an event of a customer.
    case trackEvent
    /// `POST /track/v2/projects/<projectToken>/campaigns/clicks`: a click on a campaign's link.
    case trackCampaignClick
    /// `POST /data/v2/projects/<projectToken>/customers/attributes`: attributes.
    case fetchAttributes
    /// `POST /data/v2/projects/<projectToken>/consent/categories`: the categories of consent.
    case fetchConsents
    /// `POST /webxp/s/<projectToken>/inappmessages?v=1`: the in-app messages.
    case fetchInAppMessages
    /// `POST /webxp/projects/<projectToken>/appinbox/fetch`: the App Inbox.
    case fetchAppInbox
    /// `POST /webxp/projects/<projectToken>/appinbox/markasread`: messages of the App Inbox that were read.
    case markAppInboxAsRead
    /// `POST /campaigns/send-self-check-notification?project_id=<projectToken>`: a push notification to this device.
    case sendSelfCheck

    /// Path and query for a project.
    ///
    /// - Parameter projectToken: The project's token: letters, digits and `-`.
    /// - Returns: A path that begins with `/`.
    public func path(projectToken: String) -> String {
        switch self {
        case .trackCustomer: "/track/v2/projects/\(projectToken)/customers"
        case .trackEvent: "/track/v2/projects/\(projectToken)/customers/events"
        case .trackCampaignClick: "/track/v2/projects/\(projectToken)/campaigns/clicks"
        case .fetchAttributes: "/data/v2/projects/\(projectToken)/customers/attributes"
        case .fetchConsents: "/data/v2/projects/\(projectToken)/consent/categories"
        case .fetchInAppMessages: "/webxp/s/\(projectToken)/inappmessages?v=1"
        case .fetchAppInbox: "/webxp/projects/\(projectToken)/appinbox/fetch"
        case .markAppInboxAsRead: "/webxp/projects/\(projectToken)/appinbox/markasread"
        case .sendSelfCheck: "/campaigns/send-self-check-notification?project_id=\(projectToken)"
        }
    }

    /// Whether the endpoint accepts a customer token if `BloomreachConfiguration.advancedAuthEnabled` is set. Other
    /// endpoints always use the API key.
    public var takesCustomerToken: Bool {
        self == .fetchAppInbox || self == .markAppInboxAsRead
    }

    func url(of project: BloomreachProject) -> URL? {
        var base = project.baseURL.absoluteString
        while base.hasSuffix("/") { base.removeLast() }
        return URL(string: base + path(projectToken: project.token))
    }
}
