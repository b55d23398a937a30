internal import CountersignCore
package import CountersignTransport
package import Foundation

extension ServerAnswer {
    /// `Retry-After` in either of its forms (RFC 9110, section 10.2.3), as seconds from `serverTime`.
    package static func retryAfter(in response: TransportResponse, serverTime: Date?) -> TimeInterval? {
        guard let text = response.header("Retry-After") else { return nil }
        if let seconds = TimeInterval(text), seconds >= 0, seconds.isFinite { return seconds }
        guard let date = Timestamp.date(fromHTTP: text), let serverTime else { return nil }
        return max(0, date.timeIntervalSince(serverTime))
    }

    /// `Retry-After` as a date, for a response without `Date`, which RFC 9110, section 6.6.1, permits.
    package static func retryDate(in response: TransportResponse) -> Date? {
        response.header("Retry-After").flatMap(Timestamp.date(fromHTTP:))
    }
}
