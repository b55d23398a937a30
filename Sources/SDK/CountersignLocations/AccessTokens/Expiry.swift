internal import CountersignCore
internal import Foundation

/// When a token expires. Systems use the same name for lifetimes and instants, so the size of the number decides.
enum Expiry: Equatable {
    /// Seconds from the moment at which the value was received.
    case lifetime(TimeInterval)
    /// Seconds since 1970.
    case instant(TimeInterval)

    /// Lower numbers are seconds from now, up to 31 years.
    private static let firstInstant = 1e9
    /// Numbers from this on are milliseconds.
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

    /// Reads a number, a number as text, or a date in one of the two forms that servers write.
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

    /// Seconds left at the server's time `now`. Nil if the expiry has passed: a token that was never valid has no known
    /// expiry.
    func lifetime(at now: Date) -> TimeInterval? {
        let seconds: TimeInterval =
            switch self {
            case .lifetime(let seconds): seconds
            case .instant(let instant): instant - now.timeIntervalSince1970
            }
        return seconds > 0 ? seconds : nil
    }
}
