internal import CountersignCore

/// A restriction of one user or one device of an app.
package struct UserRestriction: Sendable, Equatable {
    package enum Subject: String, Sendable, TextEnum {
        case user
        /// The `anonymousId` of events.
        case device
    }

    package enum Action: String, Sendable, TextEnum {
        case block
        case limit
        /// Invalidates the user's tokens that were issued before the restriction or have no `iat`.
        case revoke
    }

    /// The restriction's own id. It is random, because viewers must not see the ids of users.
    package let key: String
    package let subject: Subject
    package let id: String
    package let action: Action
    /// The requests in a minute that a limit allows; nil for other actions.
    package let requestsPerMinute: Int?
    package let reason: String
    package let sinceMilliseconds: Int64
    /// The end of the restriction in milliseconds since 1970; nil for no end.
    package let untilMilliseconds: Int64?

    package init(
        key: String, subject: Subject, id: String, action: Action, requestsPerMinute: Int? = nil,
        reason: String, sinceMilliseconds: Int64, untilMilliseconds: Int64?
    ) {
        self.key = key
        self.subject = subject
        self.id = id
        self.action = action
        self.requestsPerMinute = requestsPerMinute
        self.reason = reason
        self.sinceMilliseconds = sinceMilliseconds
        self.untilMilliseconds = untilMilliseconds
    }

    package static let shape = AnswerShape<UserRestriction>(
        .init("id", \.key), .init("subject", .choice(of: Subject.self), \.subject.rawValue),
        .init("action", .choice(of: Action.self), \.action.rawValue),
        .init("requests_per_minute", \.requestsPerMinute), .init("reason", \.reason),
        .time("since_ms", \.sinceMilliseconds), .time("until_ms", \.untilMilliseconds))
}
