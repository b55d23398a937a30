internal import Foundation

/// How many refreshes there were lately that no expiry explains, and how many fresh tokens were refused.
struct RefreshRate {
    enum Refusals: Equatable {
        case none
        /// Fresh tokens in a row that were refused, and the generation of the last one.
        case counted(Int, last: Int)
    }

    private var refreshes: [TimeInterval] = []
    private var refusals = Refusals.none

    mutating func refreshed(at uptime: TimeInterval) { refreshes.append(uptime) }

    /// Refreshes within the window before this instant.
    mutating func count(at uptime: TimeInterval, window: TimeInterval) -> Int {
        refreshes.removeAll { $0 <= uptime - window }
        return refreshes.count
    }

    /// A fresh token was refused; each counts once. Returns true if that is one too many.
    mutating func refused(_ generation: Int, maximum: Int) -> Bool {
        var count = 1
        if case .counted(let before, let last) = refusals {
            if last == generation { return false }
            count += before
        }
        let isTooMany = count >= maximum
        refusals = .counted(isTooMany ? 0 : count, last: generation)
        return isTooMany
    }

    mutating func accepted() {
        if case .counted(_, let last) = refusals { refusals = .counted(0, last: last) }
    }

    /// The app has handed over other tokens.
    mutating func reset() {
        refreshes = []
        accepted()
    }
}
