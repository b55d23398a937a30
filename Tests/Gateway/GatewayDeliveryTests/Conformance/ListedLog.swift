import CountersignCore
import Dispatch
import GatewayModel
import GatewayStorage
import TestSupport
import Testing

/// An event log in memory. An event's message id is its sequence number.
final class ListedLog: EventLog {
    struct State {
        var events: [StoredEvent] = []
        var isBroken = false
        /// The sequence number of the last event that retention has deleted.
        var floor: Int64 = 0
        /// The floor after the next read; nil leaves it.
        var nextFloor: Int64?
        /// The sequence numbers of events deleted with their users.
        var leftOut: Set<Int64> = []
    }

    let state = Lock(State())

    /// Adds events of these users in turn.
    func add(_ count: Int, bytes: Int = 2, users: [String] = ["u"]) {
        state.withLock { state in
            for index in 0..<count {
                let sequence = Int64(state.events.count + 1)
                let body = #"{"n":\#(sequence),"s":"\#(String(repeating: "x", count: bytes))"}"#
                state.events.append(
                    StoredEvent(
                        sequence: sequence, messageID: String(sequence), type: "track",
                        userID: users[index % users.count],
                        anonymousID: nil, name: sequence % 2 == 0 ? "even" : "odd", timestampMilliseconds: 1,
                        receivedMilliseconds: 1, proof: nil, body: Array(body.utf8)))
            }
        }
    }

    /// Excludes a user's events, as deleting the user does.
    func delete(user: String) {
        state.withLock { state in
            state.leftOut.formUnion(state.events.filter { $0.userID == user }.map(\.sequence))
        }
    }

    func follow(
        _ query: EventQuery, after sequence: Int64, limit: Int
    ) throws(GatewayError) -> EventRange {
        let state = state.withLock { state in
            defer { (state.floor, state.nextFloor) = (state.nextFloor ?? state.floor, nil) }
            return state
        }
        if state.isBroken { throw GatewayError(.storage, "planned") }
        let wanted = state.events.dropFirst(Int(sequence)).filter {
            $0.sequence > state.floor && !state.leftOut.contains($0.sequence)
                && (query.name == nil || query.name == $0.name)
        }
        let head = Int64(state.events.count)
        var page = EventRange(scannedThrough: max(sequence, head))
        page.scanned = max(0, state.events.count - Int(sequence))
        page.events = Array(wanted.prefix(limit))
        if page.events.count < wanted.count, let last = page.events.last {
            page.scannedThrough = last.sequence
            page.hasMore = true
        }
        page.gap = EventGap(after: sequence, floor: state.floor)
        return page
    }

    func positions() throws(GatewayError) -> EventPositions {
        EventPositions(logID: Array(repeating: 7, count: 8), head: state.withLock { Int64($0.events.count) })
    }

    private let unused = GatewayError(.storage, "not part of this log")

    func newest(_ query: EventQuery, before sequence: Int64?, limit: Int) throws(GatewayError) -> EventPage {
        throw unused
    }

    func users(of appID: String, after last: String, _ isEnough: (String) -> Bool) throws(GatewayError) {
        throw unused
    }

    func count() throws(GatewayError) -> Int64 { throw unused }

    func keyUses(of appID: String) throws(GatewayError) -> [KeyUse] { throw unused }
}

/// A pool without threads: the test runs the work.
final class ManualPool: Sendable {
    private struct Work: Sendable {
        let run: @Sendable () -> Void
    }

    private let waiting = Lock<[Work]>([])
    private let added = DispatchSemaphore(value: 0)

    func add(_ work: @escaping @Sendable () -> Void) {
        waiting.withLock { $0.append(Work(run: work)) }
        added.signal()
    }

    /// Waits until there is work. Completed work has left signals, so one signal is not enough.
    func waitForWork() throws {
        while waiting.withLock({ $0.isEmpty }) { try added.waitForSignal() }
    }

    /// Runs work, and the work that it adds; at most `most` steps.
    func drain(_ most: Int = .max) {
        var steps = 0
        while steps < most, let work = waiting.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            work.run()
            steps += 1
        }
    }
}
