internal import CountersignCore
internal import Foundation

package enum EventFileReport: Sendable, Equatable {
    /// A write failed with this reason; it will be retried.
    case failed(String)
    /// Writing works again.
    case recovered
}

/// The folder, limits and clock of all files.
struct FileOutput: Sendable {
    let folder: String
    let longestFile: Int
    let freeBytes: Int
    let now: @Sendable () -> Date
    let run: WayRun
    let report: @Sendable (EventFileReport) -> Void
    /// The apps whose last write failed.
    private let failing = Lock<BytewiseSet>([])

    func succeeded(_ appID: String) {
        let isLast = failing.withLock { $0.remove(appID) != nil && $0.isEmpty }
        if isLast { report(.recovered) }
    }

    /// Removes an app from the failing apps without a report.
    func closed(_ appID: String) { failing.withLock { _ = $0.remove(appID) } }

    func failed(_ appID: String, _ reason: String) {
        let isFirst = failing.withLock { failing in
            defer { failing.insert(appID) }
            return failing.isEmpty
        }
        if isFirst { report(.failed(reason)) }
    }
}
