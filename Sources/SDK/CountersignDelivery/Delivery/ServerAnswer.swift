package import CountersignCore
package import CountersignTransport
package import Foundation

/// The meaning of a server's response for the events of its request.
package struct ServerAnswer: Sendable, Equatable {
    package enum Meaning: Sendable, Equatable {
        /// The server has the events, except for `rejected`, which it will never accept.
        case accepted(duplicates: Int, rejected: [Rejection], warning: TokenVerdict?)
        /// The server rejects or requires a credential.
        case tokenProblem(TokenVerdict)
        case tooLarge
        /// The server rejects the whole request because of its content.
        case rejected(Explanation)
        /// 500: the server failed, perhaps because of one of the events.
        case serverFault(Explanation)
        /// 2xx with a body of unknown format, or counts that do not match the events. An event may be the cause.
        case notUnderstood(Explanation)
        /// The settings of the app or the server must change before anything can be sent.
        case configurationProblem(Explanation)
        case tryLater(Explanation)
        /// An operator has blocked or limited this user. The server may accept the events of other users.
        case userRestricted(Explanation)
    }

    package struct Explanation: Sendable, Hashable {
        package let code: String
        package let reason: String

        package init(_ code: String, _ reason: String) {
            self.code = code
            self.reason = reason
        }
    }

    /// An event that the server will never accept.
    package struct Rejection: Sendable, Hashable {
        /// The index of the event in the request, from 0.
        package let index: Int
        package let explanation: Explanation

        package init(index: Int, explanation: Explanation) {
            self.index = index
            self.explanation = explanation
        }
    }

    package struct TokenVerdict: Sendable, Hashable {
        package let code: AuthErrorCode
        package let reason: String
        /// Seconds by which the device clock is ahead of the server's, if that is why the token failed.
        package let clockSkew: Double?

        package init(code: AuthErrorCode, reason: String, clockSkew: Double? = nil) {
            self.code = code
            self.reason = reason
            self.clockSkew = clockSkew
        }
    }

    package var meaning: Meaning
    /// Seconds, if the server requested a delay.
    package var retryAfter: TimeInterval?
    /// The requested delay as an instant, if the response does not have the server's time.
    package var retryDate: Date?
    /// The server's clock at the time of the response; nil if a proxy may have sent it.
    package var serverTime: Date?
    package var status: Int

    package init(
        _ meaning: Meaning, status: Int, retryAfter: TimeInterval? = nil, serverTime: Date? = nil
    ) {
        self.meaning = meaning
        self.status = status
        self.retryAfter = retryAfter
        self.serverTime = serverTime
    }
}

extension ServerAnswer {
    /// Adds the delay that the response requests, but not the server's time: a proxy may have sent the response.
    package init(_ meaning: Meaning, to response: TransportResponse) {
        self.init(
            meaning, status: response.status,
            retryAfter: Self.retryAfter(in: response, serverTime: Self.serverTime(in: response)))
        if retryAfter == nil { retryDate = Self.retryDate(in: response) }
    }

    /// Whether the response is HTML or XML, such as a network's login page or a proxy's error page.
    package static func isPage(_ response: TransportResponse) -> Bool {
        switch response.body.first(where: { $0 > 0x20 }) {
        case UInt8(ascii: "<"): true
        case UInt8(ascii: "{"), UInt8(ascii: "["): false
        default:
            response.header("Content-Type")?.lowercased().contains("html") == true
                || HTMLDocument.begins(response.body)
        }
    }

    /// The meaning of a response whose body the `Destination` does not recognize.
    package static func unexpected(_ response: TransportResponse) -> Meaning {
        if isPage(response) {
            return .tryLater(.init("page", "the response is a web page, perhaps a network's login page"))
        }
        return .notUnderstood(.init("not_understood", "the response has an unexpected format"))
    }

    /// The server's clock from `Date` (RFC 9110, section 6.6.1), to the second.
    package static func serverTime(in response: TransportResponse) -> Date? {
        response.header("Date").flatMap(Timestamp.date(fromHTTP:))
    }

    /// Nil for 2xx and 401, because their meaning depends on the body.
    package static func meaning(ofStatus status: Int, explanation: Explanation) -> Meaning? {
        switch status {
        case 200..<300, 401: nil
        case 408, 421, 425, 429: .tryLater(explanation)
        case 413: .tooLarge
        case 403, 404, 405, 407, 410, 415, 426, 300..<400: .configurationProblem(explanation)
        case 400..<500: .rejected(explanation)
        case 500: .serverFault(explanation)
        default: .tryLater(explanation)
        }
    }
}
