internal import CountersignCore
public import Foundation

/// An event as the gateway has stored it.
public struct ConsumedEvent: Sendable {
    /// What the gateway knows of the user that an event names.
    public struct Verdict: RawRepresentable, Hashable, Sendable {
        /// The gateway's word, such as `verified`.
        public let rawValue: String

        /// Any word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// A valid token vouched for `userID`: signed by your backend for this user.
        public static let verified = Verdict(rawValue: "verified")
        /// Your own backend sent it, with a token that one of the app's OAuth clients has for itself.
        public static let server = Verdict(rawValue: "server")
        /// The token was missing or not valid (`code` says why), and the app does not require one.
        public static let warned = Verdict(rawValue: "warned")
        /// Nobody looked: the app's enforcement was disabled.
        public static let notJudged = Verdict(rawValue: "not_judged")
        /// The request named no user.
        public static let anonymous = Verdict(rawValue: "anonymous")
        /// Stored before verdicts were.
        public static let unknown = Verdict(rawValue: "unknown")
    }

    /// Where the event stands, at most 64 visible ASCII characters; nil in a webhook's delivery that has none.
    public let position: String?
    /// The event's number: greater than that of each event of the app before it.
    public let sequence: Int64
    /// The client's id of the event. A gateway stores each once for a user, without one for a device.
    public let messageID: String
    /// The kind of event, such as `track`.
    public let type: String
    /// When it happened, by the client's clock.
    public let timestamp: Date
    /// When it came, by the gateway's clock.
    public let received: Date
    /// What is known of the user.
    public let verdict: Verdict
    /// What was wrong with the token, from 10 to 35; nil if nothing was.
    public let code: Int?
    /// The user's id; nil if the event names none. Anybody may have written it unless `verdict` is `verified`.
    public let userID: String?
    /// The device's id.
    public let anonymousID: String?
    /// The name of a tracked event.
    public let name: String?
    /// The key that the user's token was signed with.
    public let keyID: String?
    /// The `jti` of the user's token.
    public let tokenID: String?
    /// The app's enforcement when the event came.
    public let enforcement: String?
    /// The shape of the request that it came in.
    public let dialect: String?
    /// The request that it came in.
    public let requestID: String?
    /// The event as the client has sent it, byte by byte: one JSON object, or `null` if what is stored cannot be read.
    public let body: Data
}

/// How the gateway writes an event, but for its body.
struct EventMembers: Decodable {
    let position: String?
    let seq: Int64
    let message_id: String
    let type: String
    let timestamp_ms: Int64
    let received_ms: Int64
    let verdict: String
    let code: Int?
    let user_id: String?
    let anonymous_id: String?
    let name: String?
    let key_id: String?
    let token_id: String?
    let enforcement: String?
    let dialect: String?
    let request_id: String?

    func event(body: Data) -> ConsumedEvent {
        ConsumedEvent(
            position: position, sequence: seq, messageID: message_id, type: type,
            timestamp: Milliseconds(timestamp_ms).date,
            received: Milliseconds(received_ms).date,
            verdict: ConsumedEvent.Verdict(rawValue: verdict), code: code, userID: user_id,
            anonymousID: anonymous_id, name: name, keyID: key_id, tokenID: token_id,
            enforcement: enforcement, dialect: dialect, requestID: request_id, body: body)
    }
}
