public import CountersignCore
public import Foundation

/// An event as the gateway has stored it.
public struct ConsumedEvent: Sendable {
    /// The result of verifying the user that an event names.
    public struct Verdict: RawRepresentable, Hashable, Sendable {
        /// The gateway's value, such as `verified`.
        public let rawValue: String

        /// Creates a value from its word. Words that this version does not define are allowed.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// A valid token for `userID`, signed by your backend.
        public static let verified = Verdict(rawValue: "verified")
        /// Sent by your own backend, with an access token of one of the app's OAuth clients (`client_credentials`).
        public static let server = Verdict(rawValue: "server")
        /// The token was missing or invalid (see `code`), and the app does not require one.
        public static let warned = Verdict(rawValue: "warned")
        /// Not verified: the app's enforcement was disabled.
        public static let notJudged = Verdict(rawValue: "not_judged")
        /// The request had no user.
        public static let anonymous = Verdict(rawValue: "anonymous")
        /// Stored by an earlier version of the gateway, which stored no verdicts.
        public static let unknown = Verdict(rawValue: "unknown")
    }

    /// The event's position, at most 64 visible ASCII characters; nil if a webhook delivery does not include it.
    public let position: String?
    /// The event's sequence number, increasing within the app.
    public let sequence: Int64
    /// The client's ID of the event. A gateway stores each ID once for a user, or for a device without a user.
    public let messageID: String
    /// The kind of event, such as `track`.
    public let type: String
    /// The time of the event, by the client's clock.
    public let timestamp: Date
    /// The time of receipt, by the gateway's clock.
    public let received: Date
    /// The result of verifying the user.
    public let verdict: Verdict
    /// The token's error code, from 10 to 36; nil without an error.
    public let code: Int?
    /// The user's ID; nil without a user. Trust it only if `verdict` is `verified`, or `server` (your own backend).
    public let userID: String?
    /// The device's id.
    public let anonymousID: String?
    /// The name of a tracked event.
    public let name: String?
    /// The ID of the key that signed the user's token.
    public let keyID: String?
    /// The `jti` of the user's token.
    public let tokenID: String?
    /// The claims of the user's token that the gateway stores for this app: strings, numbers and booleans. Empty
    /// unless `verdict` is `verified`.
    public let claims: JSONObject
    /// The app's enforcement at the time of receipt.
    public let enforcement: String?
    /// The wire format of the event's request, such as `native`.
    public let dialect: String?
    /// The ID of the event's request.
    public let requestID: String?
    /// The event's bytes as the client sent them: one JSON object, or `null` if the stored event is unreadable.
    public let body: Data
}

/// The gateway's encoding of an event, without the body.
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
    let claims: [String: Claim]?

    struct Claim: Decodable {
        let value: JSONValue

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let flag = try? container.decode(Bool.self) {
                value = .bool(flag)
            } else if let number = try? container.decode(Int64.self) {
                value = .integer(number)
            } else if let number = try? container.decode(Double.self) {
                value = .number(number)
            } else {
                value = .string(try container.decode(String.self))
            }
        }
    }

    func event(body: Data) -> ConsumedEvent {
        ConsumedEvent(
            position: position, sequence: seq, messageID: message_id, type: type,
            timestamp: Milliseconds(timestamp_ms).date,
            received: Milliseconds(received_ms).date,
            verdict: ConsumedEvent.Verdict(rawValue: verdict), code: code, userID: user_id,
            anonymousID: anonymous_id, name: name, keyID: key_id, tokenID: token_id,
            claims: JSONObject((claims ?? [:]).map { ($0, $1.value) }, uniquingKeysWith: { $1 }),
            enforcement: enforcement, dialect: dialect, requestID: request_id, body: body)
    }
}
