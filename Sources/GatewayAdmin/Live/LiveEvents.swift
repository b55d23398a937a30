internal import CountersignCore
internal import Foundation
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayObservability

/// Verdicts as server-sent events (WHATWG HTML, section 9.2), for one watcher.
final class LiveEvents: Sendable {
    /// Whose and which verdicts somebody watches.
    struct Filter: Sendable {
        var appID: String?
        var code: Int?
        /// The id, or the pseudonym.
        var user: String?
        /// Finds who has the pseudonym; nil when ``user`` is none.
        var pseudonymMask: UserMask?

        func matches(_ entry: LiveFeed.Entry) -> Bool {
            (appID == nil || entry.key.appID == appID) && (code == nil || entry.key.code?.rawValue == code)
                && (user.map { names(entry, $0) } ?? true)
        }

        private func names(_ entry: LiveFeed.Entry, _ user: String) -> Bool {
            if entry.userID?.utf8.elementsEqual(user.utf8) == true { return true }
            guard let shown = pseudonymMask?.user(entry.userID, of: entry.key.appID) else { return false }
            return shown.utf8.elementsEqual(user.utf8)
        }
    }

    private struct State {
        var lastID: UInt64?
        var hasBegun = false
        var oneIn = 1
        /// When to look again, and when something was sent, by the clock of `nanoseconds`.
        var nextLook: UInt64 = 0
        var sent: UInt64 = 0
        var nextCheck: UInt64 = 0
        var isOver = false
    }

    private static let checks = DispatchQueue(label: "live")
    /// Between two looks at who is watching.
    private static let checkNanoseconds: UInt64 = 2_000_000_000

    private static let pingNanoseconds: UInt64 = 15_000_000_000
    /// Between two looks.
    private static let pause: UInt64 = 100_000_000
    /// What one look may send: one watcher costs the gateway at most 1,000 verdicts a second.
    private static let longestPage = 100

    private let feed: LiveFeed
    private let filter: Filter
    private let mask: UserMask
    private let isAllowed: @Sendable () -> Bool
    private let nanoseconds: @Sendable () -> UInt64
    private let state: Lock<State>

    init(
        _ feed: LiveFeed, after lastID: UInt64?, _ filter: Filter, _ mask: UserMask,
        isAllowed: @escaping @Sendable () -> Bool = { true },
        nanoseconds: @escaping @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
    ) {
        self.feed = feed
        self.filter = filter
        self.mask = mask
        self.isAllowed = isAllowed
        self.nanoseconds = nanoseconds
        state = Lock(State(lastID: lastID))
    }

    var stream: ResponseStream {
        ResponseStream(pull: { [self] in
            let text = state.withLock { $0.isOver ? nil : next(&$0) }
            guard let text else { return .end }
            return text.isEmpty ? .nothing : .bytes(Array(text.utf8))
        })
    }

    private func check() {
        Self.checks.async { [weak self] in
            guard let self, !isAllowed() else { return }
            state.withLock { $0.isOver = true }
        }
    }

    private func next(_ state: inout State) -> String {
        let now = nanoseconds()
        guard now >= state.nextLook else { return "" }
        state.nextLook = now + Self.pause
        if now >= state.nextCheck {
            // The answer that this begins with was allowed a moment ago.
            if state.hasBegun { check() }
            state.nextCheck = now + Self.checkNanoseconds
        }
        let page = feed.entries(after: state.lastID)
        var text = ""
        if page.missed != 0 {
            let missed = page.missed.map { String($0) } ?? "null"
            text += "event: gap\ndata: {\"missed\":\(missed)}\n\n"
        }
        let entries = page.entries.filter { filter.matches($0) }
        // What a watcher missed while it was away comes whole.
        let oneIn = state.hasBegun ? max(1, (entries.count + Self.longestPage - 1) / Self.longestPage) : 1
        if !state.hasBegun || oneIn != state.oneIn {
            if !state.hasBegun { text += "retry: 1000\n" }
            let id = state.lastID ?? page.lastID
            text += "event: sampling\nid: \(id)\ndata: {\"one_in\":\(oneIn)}\n\n"
        }
        state.hasBegun = true
        state.oneIn = oneIn
        for (index, entry) in entries.enumerated() where index % oneIn == 0 {
            let data = String(decoding: json(entry).bytes, as: UTF8.self)
            text += "event: verdict\nid: \(entry.id)\ndata: \(data)\n\n"
        }
        state.lastID = page.lastID
        if text.isEmpty, now - state.sent >= Self.pingNanoseconds {
            text = "event: ping\nid: \(page.lastID)\ndata: {}\n\n"
        }
        if !text.isEmpty { state.sent = now }
        return text
    }

    private func json(_ entry: LiveFeed.Entry) -> JSONValue {
        let key = entry.key
        return [
            "id": .string(entry.sampleID ?? String(entry.id)), "app": .string(key.appID),
            "at_ms": .integer(entry.atMilliseconds), "verdict": .string(key.verdict.rawValue),
            "code": key.code.map { .integer(Int64($0.rawValue)) } ?? .null,
            "reason": key.code.map { .string($0.reason) } ?? .null, "endpoint": .string(key.endpoint),
            "user": mask.user(entry.userID, of: key.appID).map { .string($0) } ?? .null,
            "sdk": key.client.sdk.map { .string($0) } ?? .null,
            "app_version": key.client.appVersion.map { .string($0) } ?? .null,
            "client": .string(entry.network), "enforcement": .string(key.enforcement?.rawValue ?? ""),
            "request_id": .string(entry.requestID),
            "sample_id": entry.sampleID.map { .string($0) } ?? .null,
        ]
    }
}
