internal import Foundation

/// Counts recent refreshes that no expiry explains, and rejected fresh tokens.
struct RefreshRate {
    enum Rejections: Equatable {
        case none
        /// The number of consecutive rejected fresh tokens, and the generation of the last one.
        case counted(Int, last: Int)
    }

    private var refreshes: [TimeInterval] = []
    private var rejections = Rejections.none

    mutating func refreshed(at uptime: TimeInterval) { refreshes.append(uptime) }

    mutating func count(at uptime: TimeInterval, window: TimeInterval) -> Int {
        refreshes.removeAll { $0 <= uptime - window }
        return refreshes.count
    }

    /// Counts a rejected fresh token once. Returns true if `maximum` is reached.
    mutating func rejected(_ generation: Int, maximum: Int) -> Bool {
        var count = 1
        if case .counted(let before, let last) = rejections {
            if last == generation { return false }
            count += before
        }
        let isTooMany = count >= maximum
        rejections = .counted(isTooMany ? 0 : count, last: generation)
        return isTooMany
    }

    mutating func accepted() {
        if case .counted(_, let last) = rejections { rejections = .counted(0, last: last) }
    }

    mutating func reset() {
        refreshes = []
        accepted()
    }
}
