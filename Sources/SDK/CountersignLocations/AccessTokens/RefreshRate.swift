internal import Foundation

/// Counts recent refreshes that no expiry explains, and consecutive fresh tokens that were rejected.
struct RefreshRate {
    private var refreshes: [TimeInterval] = []
    private var rejections = 0
    private var lastRejectedGeneration: Int?

    mutating func refreshed(at uptime: TimeInterval) { refreshes.append(uptime) }

    mutating func count(at uptime: TimeInterval, window: TimeInterval) -> Int {
        refreshes.removeAll { $0 <= uptime - window }
        return refreshes.count
    }

    /// Counts a rejected fresh token once. Returns true, and counts from 0 again, if `maximum` is reached.
    mutating func rejected(_ generation: Int, maximum: Int) -> Bool {
        guard generation != lastRejectedGeneration else { return false }
        lastRejectedGeneration = generation
        rejections += 1
        guard rejections >= maximum else { return false }
        rejections = 0
        return true
    }

    mutating func accepted() { rejections = 0 }

    mutating func reset() {
        refreshes = []
        accepted()
    }
}
