/// A day of the Gregorian calendar, in UTC.
///
/// Counts eras of 400 years, which have 146,097 days, and years from March, so that a leap day ends its year. Day 0
/// is 1970-01-01, which is 719,468 days after 0000-03-01.
struct CalendarDay {
    let year: Int64
    let month: Int64
    let day: Int64

    init(year: Int64, month: Int64, day: Int64) {
        (self.year, self.month, self.day) = (year, month, day)
    }

    init(number: Int64) {
        let (era, ofEra) = Self.floorDivide(number + 719_468, 146_097)
        let yearOfEra = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * ofYear + 2) / 153
        month = shifted < 10 ? shifted + 3 : shifted - 9
        year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
        day = ofYear - (153 * shifted + 2) / 5 + 1
    }

    /// Days since 1970-01-01.
    var number: Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let (era, ofEra) = Self.floorDivide(shifted, 400)
        let ofYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }

    static func floorDivide(_ value: Int64, _ divisor: Int64) -> (Int64, Int64) {
        let remainder = value % divisor
        return remainder < 0 ? (value / divisor - 1, remainder + divisor) : (value / divisor, remainder)
    }
}
