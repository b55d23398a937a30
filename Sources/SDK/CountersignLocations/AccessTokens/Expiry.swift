internal import CountersignCore
internal import Foundation

/// When a token expires. Servers use the same names for lifetimes and instants, so `auto` decides by the number's size.
enum Expiry: Equatable {
    /// Seconds from the moment at which the value was received.
    case lifetime(TimeInterval)
    /// Seconds since 1970.
    case instant(TimeInterval)

    /// A number below this one is a lifetime, of up to 31 years.
    private static let firstInstant = 1e9
    /// This number and higher ones are milliseconds since 1970.
    private static let firstMilliseconds = 1e11

    /// Nil for 0, negative and non-finite numbers.
    init?(number: Double, unit: AuthorizationConfiguration.ExpiresUnit = .auto) {
        guard number > 0, number.isFinite else { return nil }
        switch unit {
        case .relative: self = .lifetime(number)
        case .epochSeconds: self = .instant(number)
        case .epochMilliseconds: self = .instant(Milliseconds(number).seconds)
        default:
            self =
                number >= Self.firstMilliseconds
                ? .instant(Milliseconds(number).seconds)
                : number >= Self.firstInstant ? .instant(number) : .lifetime(number)
        }
    }

    /// Reads a number, a number as text, or a date in the form of RFC 3339 or HTTP. Nil for other values.
    init?(_ value: JSONValue, unit: AuthorizationConfiguration.ExpiresUnit = .auto) {
        switch value {
        case .integer(let number): self.init(number: Double(number), unit: unit)
        case .number(let number): self.init(number: number, unit: unit)
        case .string(let text):
            if let number = Double(text) {
                self.init(number: number, unit: unit)
            } else if let milliseconds = RFC3339.milliseconds(text, isLenient: true) {
                self = .instant(Milliseconds(milliseconds).seconds)
            } else if let date = Timestamp.date(fromHTTP: text) {
                self = .instant(date.timeIntervalSince1970)
            } else {
                return nil
            }
        default: return nil
        }
    }

    /// Seconds from `now`, by the server's clock, to the expiry. Nil if the result is 0 or less: a new token cannot
    /// have expired, so its stated expiry is wrong.
    func lifetime(at now: Date) -> TimeInterval? {
        let seconds: TimeInterval =
            switch self {
            case .lifetime(let seconds): seconds
            case .instant(let instant): instant - now.timeIntervalSince1970
            }
        return seconds > 0 ? seconds : nil
    }
}
