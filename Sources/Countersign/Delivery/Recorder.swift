internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

/// Takes events from any thread and stores them on the storage thread.
///
/// The caller pays for a lock and an append; rendering and the disk are on the other side. All that has come in while one
/// transaction was written goes into the next.
final class Recorder: Sendable {
    private struct Unsaved {
        let record: EventRecord
        let bytes: Int
        let completion: (@Sendable (Result<String, CountersignError>) -> Void)?
    }

    private struct State {
        var userID: String?
        var sessionID: String
        var unsaved: [Unsaved] = []
        /// Also those that are being written now.
        var unsavedEvents = 0
        var unsavedBytes = 0
        var isDraining = false
        var isClosed = false
        var hasOptedOut = false
        var dropped = 0
        var lastError: String?
        /// Writes in a row that another process's lock has kept out.
        var lockedAttempts = 0
    }

    /// Half a minute, about: nobody holds the lock for that long unless it hangs.
    private static let maximumLockedAttempts = 15

    private let state: Lock<State>
    private let storage: Storage
    private let dialect: any DeliveryDialect
    private let limits: QueueLimits
    private let clock: any ClientClock
    private let log: CountersignLog?
    private let stored: @Sendable (Int) -> Void

    // `stored` is called on the storage thread after events have become durable, with their number.
    init(
        storage: Storage, dialect: any DeliveryDialect, limits: QueueLimits, clock: any ClientClock,
        sessionID: String, log: CountersignLog?, stored: @escaping @Sendable (Int) -> Void
    ) {
        self.storage = storage
        self.dialect = dialect
        self.limits = limits
        self.clock = clock
        self.log = log
        self.stored = stored
        state = Lock(State(sessionID: sessionID))
    }

    /// Events that were dropped because too many waited in memory, and why the last write failed.
    var losses: (dropped: Int, unsaved: Int, lastError: String?) {
        state.withLock { ($0.dropped, $0.unsavedEvents, $0.lastError) }
    }

    var userID: String? { state.withLock { $0.userID } }

    /// Events from now on belong to this user.
    ///
    /// - Returns: True if that is another one than before.
    func setUser(_ userID: String?) -> Bool {
        state.withLock { state in
            // Byte for byte: `String ==` would take two different users for one (RFC 7519, section 2).
            let isSame = userID.map { Array($0.utf8) } == state.userID.map { Array($0.utf8) }
            state.userID = userID
            return !isSame
        }
    }

    func setSession(_ sessionID: String) {
        state.withLock { $0.sessionID = sessionID }
    }

    /// Takes an event and returns at once. Its message id is made here unless it has one.
    ///
    /// `owner` stands in for the user where a dialect has something else whose events wait for themselves alone.
    func record(
        _ kind: EventKind, name: String?, payload: [String: JSONValue], messageID: String? = nil,
        owner: String? = nil,
        completion: (@Sendable (Result<String, CountersignError>) -> Void)? = nil
    ) {
        let now = clock.now
        let bytes = JSONValue.object(payload).estimatedBytes
        let (refusal, mustDrain) = state.withLock { state -> (CountersignError?, Bool) in
            if state.isClosed { return (CountersignError(.closed, "the client is closed"), false) }
            if state.hasOptedOut { return (CountersignError(.optedOut, "nothing is recorded"), false) }
            guard
                state.unsavedEvents < limits.maximumUnsavedEvents,
                state.unsavedBytes + bytes <= limits.maximumUnsavedBytes
            else {
                state.dropped += 1
                return (
                    CountersignError(.tooManyUnsaved, "\(state.unsavedEvents) events wait for the disk"),
                    false
                )
            }
            // The id is made under the lock, so that ids sort as the events do.
            let record = EventRecord(
                kind: kind, messageID: messageID ?? UUIDv7.make(at: now), userID: owner ?? state.userID,
                sessionID: state.sessionID, timestamp: now, name: name, payload: payload)
            state.unsaved.append(Unsaved(record: record, bytes: bytes, completion: completion))
            state.unsavedEvents += 1
            state.unsavedBytes += bytes
            let mustDrain = !state.isDraining
            state.isDraining = true
            return (nil, mustDrain)
        }
        if let refusal { completion?(.failure(refusal)) }
        if mustDrain { storage.submit { self.drain(on: $0) } }
    }

    /// Stores what was recorded before this call; returns when that is done or has failed.
    func drain() async {
        await withCheckedContinuation { continuation in
            storage.submit { storage in
                self.drain(on: storage)
                continuation.resume()
            }
        }
    }

    /// Takes nothing more, and stores what it has.
    func close() async {
        state.withLock { $0.isClosed = true }
        await drain()
    }

    /// Records nothing any more, or again.
    func setOptedOut(_ isOut: Bool) {
        state.withLock { $0.hasOptedOut = isOut }
        if isOut { discard() }
    }

    /// Throws away what the disk does not have yet, and forgets the user.
    func wipe() {
        state.withLock { $0.userID = nil }
        discard()
    }

    private func discard() {
        let batch = state.withLock { state in
            release(state.unsaved, in: &state)
            defer { state.unsaved = [] }
            return state.unsaved
        }
        for entry in batch { entry.completion?(.failure(CountersignError(.notStored, "the data was wiped"))) }
    }

    private func drain(on storage: Storage) {
        if storage.hasOptedOut { setOptedOut(true) }
        while true {
            let batch = state.withLock { state -> [Unsaved] in
                defer { state.unsaved = [] }
                if state.unsaved.isEmpty { state.isDraining = false }
                return state.unsaved
            }
            if batch.isEmpty { return }
            do {
                let tooLarge = try storage.withQueue { queue in try store(batch, in: queue) }
                state.withLock { state in
                    release(batch, in: &state)
                    state.lastError = nil
                    state.lockedAttempts = 0
                }
                for entry in batch {
                    let isKept = !tooLarge.contains(entry.record.messageID)
                    entry.completion?(
                        isKept
                            ? .success(entry.record.messageID)
                            : .failure(CountersignError(.eventTooLarge, "it is in quarantine")))
                }
                stored(batch.count - tooLarge.count)
            } catch {
                keep(batch, after: error)
                return
            }
        }
    }

    /// - Returns: The ids of those that are too large to be sent.
    private func store(_ batch: [Unsaved], in queue: EventQueue) throws -> Set<String> {
        let anonymousID = try queue.anonymousID()
        let rows = batch.map { entry in
            RenderedEvent(
                messageID: entry.record.messageID, userID: entry.record.userID,
                sessionID: entry.record.sessionID,
                body: dialect.render(entry.record, anonymousID: anonymousID))
        }
        try queue.append(rows, clock: clock)
        return Set(rows.filter { $0.body.count > limits.maximumEventBytes }.map(\.messageID))
    }

    /// After a failed write: who waits for an answer gets the error, and that event is forgotten; the others are tried
    /// again in a second. Where another process only holds the lock, all are, for a while.
    private func keep(_ batch: [Unsaved], after error: any Error) {
        let failure = CountersignError(.notStored, "\(error)")
        let isLocked = (error as? SQLiteError)?.isBusy == true
        let waiting = state.withLock { state in
            state.lockedAttempts = isLocked ? state.lockedAttempts + 1 : 0
            guard !state.isClosed else {
                // Nobody will try again.
                release(batch, in: &state)
                state.dropped += batch.count
                state.isDraining = false
                return batch
            }
            let isPatient = isLocked && state.lockedAttempts <= Self.maximumLockedAttempts
            let waiting = isPatient ? [] : batch.filter { $0.completion != nil }
            release(waiting, in: &state)
            state.unsaved.insert(contentsOf: isPatient ? batch : batch.filter { $0.completion == nil }, at: 0)
            state.lastError = failure.detail
            state.isDraining = !state.unsaved.isEmpty
            return waiting
        }
        log?(.warning, "events could not be stored", ["error": failure.detail])
        for entry in waiting { entry.completion?(.failure(failure)) }
        guard waiting.count < batch.count else { return }
        Task { [clock, storage] in
            try await clock.sleep(until: clock.uptime + 1)
            storage.submit { self.drain(on: $0) }
        }
    }

    private func release(_ batch: [Unsaved], in state: inout State) {
        state.unsavedEvents -= batch.count
        state.unsavedBytes -= batch.reduce(0) { $0 + $1.bytes }
    }
}
