internal import CountersignCore

/// Which consumer.
package struct EventConsumerID: Hashable, Sendable {
    package enum Kind: String, Sendable, TextEnum {
        /// Read by a client through the API.
        case pull
        /// Sent by the gateway.
        case webhook
        /// Published to a stream by the gateway.
        case sink
    }

    package let appID: String
    package let kind: Kind
    /// 1 to 64 of `A-Z a-z 0-9 . _ -`, except `.` and `..`. Unique among the app's consumers of this kind.
    package let name: String

    package init(appID: String, kind: Kind = .pull, name: String) {
        self.appID = appID
        self.kind = kind
        self.name = name
    }

    package static func isName(_ text: some StringProtocol) -> Bool {
        !GivenName.isPathStep(text) && 1...64 ~= text.utf8.count
            && text.utf8.allSatisfy { $0.isASCIIAlphanumeric(or: "._-") }
    }
}

/// What a consumer is made with.
package struct EventConsumerSettings: Sendable, Equatable {
    package static let mostPartitions = 16
    package static let longestHold = 90
    /// Days that retention waits when a consumer that asks for it names none.
    package static let usualHold = 7

    package var filter: EventFilter
    /// Into how many parts the events are split, each for one worker at a time: 1 to 16.
    package var partitions: Int
    /// For so many days, 1 to 90, retention leaves events that it would delete until the consumer has read them; nil
    /// deletes them unread.
    package var holdDays: Int?

    package init(filter: EventFilter = EventFilter(), partitions: Int = 1, holdDays: Int? = nil) {
        self.filter = filter
        self.partitions = partitions
        self.holdDays = holdDays
    }
}

/// Where a consumer begins.
package enum EventStart: Sendable, Equatable {
    /// Before the oldest event that is kept.
    case start
    /// After the newest one.
    case end
    /// Before the first event that was received at this time or later, in milliseconds since 1970.
    case time(Int64)
    /// After the event with this number.
    case after(Int64)
}
