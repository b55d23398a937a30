internal import CountersignCore

package struct EventConsumerID: Hashable, Comparable, Sendable {
    package enum Kind: String, Sendable, TextEnum {
        case pull
        case webhook
        case stream = "sink"
        case file

        /// The word in metrics, logs and alerts. The raw value is stored.
        package var noun: String {
            switch self {
            case .pull: "consumer"
            case .webhook: "webhook"
            case .stream: "stream"
            case .file: "files"
            }
        }
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

    package static func < (first: EventConsumerID, second: EventConsumerID) -> Bool {
        first.appID == second.appID ? first.name < second.name : first.appID < second.appID
    }

    package static func isName(_ text: some StringProtocol) -> Bool {
        !GivenName.isPathStep(text) && 1...64 ~= text.utf8.count
            && text.utf8.allSatisfy { $0.isASCIIAlphanumeric(or: "._-") }
    }
}

package struct EventConsumerSettings: Sendable, Equatable {
    package static let mostPartitions = 16
    package static let longestHold = 90
    package static let usualHold = 7

    package var filter: EventFilter
    /// The number of partitions, 1 to 16. Each partition is read by one worker at a time.
    package var partitions: Int
    /// The extra days (1 to 90) for which retention keeps unread events; nil keeps none.
    package var holdDays: Int?

    package init(filter: EventFilter = EventFilter(), partitions: Int = 1, holdDays: Int? = nil) {
        self.filter = filter
        self.partitions = partitions
        self.holdDays = holdDays
    }
}

package enum EventStart: Sendable, Equatable {
    case start
    case end
    /// Before the first event received at or after this time, in milliseconds since 1970.
    case time(Int64)
    case after(Int64)
}
