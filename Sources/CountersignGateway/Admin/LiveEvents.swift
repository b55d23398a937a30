internal import CountersignCore
internal import Foundation

/// Verdicts as server-sent events (WHATWG HTML, section 9.2), for one watcher.
final class LiveEvents: Sendable {
    /// Whose and which verdicts somebody watches.
    struct Filter: Sendable {
        var appID: String?
        var code: Int?
        var user: String?

        func matches(_ entry: LiveFeed.Entry) -> Bool {
            (appID == nil || entry.key.appID == appID) && (code == nil || entry.key.code?.rawValue == code)
                && (user == nil || entry.userID == user)
        }
    }

    private struct State {
        var lastID: UInt64?
        var hasBegun = false
        var sent = DispatchTime.now()
    }

    private static let pingSeconds = 15.0
    private let feed: LiveFeed
    private let filter: Filter
    private let state: Lock<State>

    /// - Parameters:
    ///   - feed: Where they come from.
    ///   - lastID: The last one that the watcher has; nil begins with what comes now.
    ///   - filter: Which ones.
    init(_ feed: LiveFeed, after lastID: UInt64?, _ filter: Filter) {
        self.feed = feed
        self.filter = filter
        state = Lock(State(lastID: lastID))
    }

    var stream: ResponseStream {
        ResponseStream(pull: { [self] in
            let text = state.withLock { next(&$0) }
            return text.isEmpty ? .nothing : .bytes(Array(text.utf8))
        })
    }

    private func next(_ state: inout State) -> String {
        var text = ""
        let page = feed.entries(after: state.lastID)
        if !state.hasBegun {
            state.hasBegun = true
            // Every verdict is sent.
            text = "retry: 1000\nevent: sampling\ndata: {\"one_in\":1}\n\n"
            // Ids count from 1 at each start of the gateway: a larger one is of an earlier run.
            if let last = state.lastID, last > page.lastID {
                text += "event: gap\ndata: {\"missed\":null}\n\n"
            }
        }
        if page.missed > 0 { text += "event: gap\ndata: {\"missed\":\(page.missed)}\n\n" }
        for entry in page.entries where filter.matches(entry) {
            let data = String(decoding: Self.json(entry).bytes, as: UTF8.self)
            text += "event: verdict\nid: \(entry.id)\ndata: \(data)\n\n"
        }
        state.lastID = page.lastID
        let now = DispatchTime.now()
        let quiet = Double(now.uptimeNanoseconds - state.sent.uptimeNanoseconds) / 1e9
        if text.isEmpty, quiet >= Self.pingSeconds { text = "event: ping\nid: \(page.lastID)\ndata: {}\n\n" }
        if !text.isEmpty { state.sent = now }
        return text
    }

    private static func json(_ entry: LiveFeed.Entry) -> JSONValue {
        let key = entry.key
        return [
            "id": .string(entry.sampleID ?? String(entry.id)), "app": .string(key.appID),
            "at_ms": .integer(entry.atMilliseconds), "verdict": .string(key.verdict.rawValue),
            "code": key.code.map { .integer(Int64($0.rawValue)) } ?? .null,
            "reason": key.code.map { .string($0.reason) } ?? .null, "endpoint": .string(key.endpoint),
            "user": FailureSample.mask(entry.userID).map { .string($0) } ?? .null,
            "sdk": key.client.sdk.map { .string($0) } ?? .null,
            "app_version": key.client.appVersion.map { .string($0) } ?? .null,
            "client": .string(entry.network), "enforcement": .string(key.enforcement?.rawValue ?? ""),
            "request_id": .string(entry.requestID),
            "sample_id": entry.sampleID.map { .string($0) } ?? .null,
        ]
    }
}

extension FailureSample {
    /// As much of a user id as tells two apart: `al…@…`.
    static func mask(_ user: String?) -> String? {
        user.map { $0.count > 2 ? $0.prefix(2) + ($0.contains("@") ? "…@…" : "…") : "…" }
    }
}
