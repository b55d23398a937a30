internal import CountersignCore
internal import Foundation
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayObservability

/// Verification results and enforcement changes as server-sent events (WHATWG HTML, section 9.2).
final class LiveEvents: Sendable {
    struct Filter: Sendable {
        var appID: String?
        var code: Int?
        /// A user id or a pseudonym.
        var user: String?
        /// Used to match a pseudonym; nil if ``user`` is an id.
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
        var ready: [UInt8]?
        var enforcement: JSONValue?
        var isRefreshing = false
        /// On the clock of `nanoseconds`.
        var nextRefresh: UInt64 = 0
        var isOver = false
    }

    /// The last id, sampling rate and enforcement sent to the client. Used by one refresh at a time.
    private struct Progress {
        var lastID: UInt64?
        var hasBegun = false
        var oneIn = 1
        var enforcement: JSONValue?
        /// The times of the last transmission and of the next access check, on the clock of `nanoseconds`.
        var sent: UInt64 = 0
        var nextCheck: UInt64 = 0
    }

    /// Serializing a page takes longer than a request, so it does not run on the server's threads.
    private static let queue = DispatchQueue(label: "live")
    /// Access checks read the database, so they have their own queue.
    private static let checks = DispatchQueue(label: "live checks")
    private static let checkNanoseconds: UInt64 = 2_000_000_000
    /// The interval of access checks that also read the enforcement.
    private static let enforcementNanoseconds: UInt64 = 400_000_000

    private static let pingNanoseconds: UInt64 = 15_000_000_000
    private static let pause: UInt64 = 100_000_000
    /// The maximum number of results in a page after the first, which limits a client to 1,000 results a second.
    private static let longestPage = 100

    private let feed: LiveFeed?
    private let filter: Filter
    private let mask: UserMask
    private let isAllowed: @Sendable () -> Bool
    private let enforcement: (@Sendable () -> JSONValue?)?
    private let nanoseconds: @Sendable () -> UInt64
    private let beside: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let state = Lock(State())
    private let progress: Lock<Progress>

    /// Without a feed, the stream has no verification results. `enforcement` reads the app's enforcement and
    /// returns nil after an error. `beside` runs work on another thread.
    init(
        _ feed: LiveFeed?, after lastID: UInt64?, _ filter: Filter, _ mask: UserMask,
        isAllowed: @escaping @Sendable () -> Bool = { true },
        enforcement: (@Sendable () -> JSONValue?)? = nil,
        nanoseconds: @escaping @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds },
        beside: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { queue.async(execute: $0) }
    ) {
        self.feed = feed
        self.filter = filter
        self.mask = mask
        self.isAllowed = isAllowed
        self.enforcement = enforcement
        self.nanoseconds = nanoseconds
        self.beside = beside
        progress = Lock(Progress(lastID: lastID))
    }

    var stream: ResponseStream {
        ResponseStream(pull: { [self] in
            let now = nanoseconds()
            let isDue = state.withLock { state in
                guard now >= state.nextRefresh, !state.isRefreshing, !state.isOver, state.ready == nil else {
                    return false
                }
                state.nextRefresh = now + Self.pause
                state.isRefreshing = true
                return true
            }
            if isDue { beside { [self] in refresh(now) } }
            return state.withLock { state in
                defer { state.ready = nil }
                return state.isOver ? .end : state.ready.map { .bytes($0) } ?? .nothing
            }
        })
    }

    private func refresh(_ now: UInt64) {
        let output = progress.withLock { progress in
            if now >= progress.nextCheck {
                check(access: progress.hasBegun)
                progress.nextCheck =
                    now + (enforcement == nil ? Self.checkNanoseconds : Self.enforcementNanoseconds)
            }
            return events(at: now, &progress)
        }
        state.withLock { state in
            state.ready = output.isEmpty ? nil : output
            state.isRefreshing = false
        }
    }

    /// If `access` is true and the client is no longer allowed, ends the stream. Otherwise reads the enforcement.
    private func check(access: Bool) {
        Self.checks.async { [weak self] in
            guard let self else { return }
            if access, !isAllowed() {
                state.withLock { $0.isOver = true }
            } else if let current = enforcement?() {
                state.withLock { $0.enforcement = current }
            }
        }
    }

    private func events(at now: UInt64, _ progress: inout Progress) -> [UInt8] {
        let page = feed?.entries(after: progress.lastID)
        var output: [UInt8] = []
        func write(_ event: String, id: UInt64? = nil, _ data: [UInt8]) {
            output += "event: \(event)\n".utf8
            if let id { output += "id: \(id)\n".utf8 }
            output += "data: ".utf8
            output += data
            output += "\n\n".utf8
        }
        if let page, page.missed != 0 {
            write("gap", Array("{\"missed\":\(page.missed.map { String($0) } ?? "null")}".utf8))
        }
        let entries = page?.entries.filter { filter.matches($0) } ?? []
        // The first page of a connection is not sampled, so that a reconnect loses no result.
        let oneIn =
            progress.hasBegun ? max(1, (entries.count + Self.longestPage - 1) / Self.longestPage) : 1
        if !progress.hasBegun || oneIn != progress.oneIn {
            if !progress.hasBegun { output += "retry: 1000\n".utf8 }
            if let page {
                write(
                    "sampling", id: progress.lastID ?? page.lastID, Array("{\"one_in\":\(oneIn)}".utf8))
            }
        }
        if let current = state.withLock({ $0.enforcement }), current != progress.enforcement {
            progress.enforcement = current
            write("enforcement", current.bytes)
        }
        progress.hasBegun = true
        progress.oneIn = oneIn
        for (index, entry) in entries.enumerated() where index % oneIn == 0 {
            write("verdict", id: entry.id, json(entry).bytes)
        }
        progress.lastID = page?.lastID
        if output.isEmpty, now - progress.sent >= Self.pingNanoseconds {
            write("ping", id: page?.lastID, Array("{}".utf8))
        }
        if !output.isEmpty { progress.sent = now }
        return output
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
            "request_id": mask.clientText(entry.requestID).jsonValue,
            "sample_id": entry.sampleID.map { .string($0) } ?? .null,
        ]
    }
}
