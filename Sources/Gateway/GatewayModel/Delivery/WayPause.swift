internal import CountersignCore

package struct WayPause: Sendable, Equatable {
    package enum Reason: String, Sendable, TextEnum {
        case requested
        /// The receiver has responded with 410 Gone (RFC 9110, section 15.5.11).
        case gone
        case failing
    }

    package var reason = Reason.requested
    package var by = ""
    package var atMilliseconds: Int64 = 0

    package init(_ reason: Reason = .requested, by: String = "", atMilliseconds: Int64 = 0) {
        self.reason = reason
        self.by = by
        self.atMilliseconds = atMilliseconds
    }
}

extension WayPause: SettingPart {
    package static let fields: [JSONField<WayPause>] = [
        .choice("reason", \.reason, unreadable: .requested), .text("by", \.by, longest: 512),
        .member("at_ms", \.atMilliseconds, .milliseconds),
    ]
}
