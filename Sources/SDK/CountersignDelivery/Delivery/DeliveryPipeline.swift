internal import CountersignCore
package import CountersignTransport
package import Foundation

/// A persistent queue that delivers records to a server. Every client uses it.
///
/// Each record has an owner: a user, a project or nil. Records of an owner without a credential do not block the
/// records of other owners.
package final class DeliveryPipeline: Sendable {
    package let storage: Storage
    package let recorder: Recorder
    package let engine: DeliveryEngine
    package let clock: any ClientClock
    package let settings: DeliverySettings
    let session: Lock<SessionTracker>
    let uploads: InterruptibleTransport
    private let lifecycle = Lock<Observation?>(nil)
    private let sessionHandler = Lock(SessionHandler())

    private struct SessionHandler {
        var call: (@Sendable (SessionEvent) -> Void)?
    }

    var log: CountersignLog? { settings.log }

    /// Opens the queue file in the background and begins a session. `owner` is the initial owner of records.
    /// `Recorder.saveIdentity` writes to `identity`. Throws `invalidConfiguration`.
    package init(
        settings: DeliverySettings, storage: Storage, destination: any Destination,
        credentials: any CredentialSource, owner: String? = nil, identity: SlotFile? = nil,
        transport: (any HTTPTransport)?,
        clock: any ClientClock, random: @escaping @Sendable () -> Double
    ) throws(CountersignError) {
        try settings.validate()
        self.settings = settings
        self.storage = storage
        self.clock = clock
        let tracker = SessionTracker(timeout: settings.sessionTimeout, now: clock.now, uptime: clock.uptime)
        session = Lock(tracker)
        uploads = InterruptibleTransport(transport ?? makeDefaultTransport(), clock: clock)
        engine = DeliveryEngine(
            settings: settings, storage: storage, destination: destination, credentials: credentials,
            transport: uploads, clock: clock, random: random)
        recorder = Recorder(
            storage: storage, limits: settings.limits, clock: clock, userID: owner, identity: identity,
            sessionID: tracker.id, log: settings.log
        ) { [inbox = engine.inbox] count in inbox.post(.stored(count)) }
        Task { [engine] in await engine.start() }
        let observer = Observation.lifecycle(
            background: { [weak self] in self?.enterBackground(holding: BackgroundAssertion.system) },
            foreground: { [weak self] in self?.enterForeground() },
            active: { [weak self] in self?.notify(.appActive) })
        lifecycle.withLock { $0 = observer }
    }

    deinit {
        Task { [engine, recorder, storage] in await Self.close(recorder, engine, storage) }
    }

    // MARK: Records

    /// Returns the message id once the record is durable.
    package func store(
        _ content: any RecordContent, messageID: String? = nil
    ) async throws(CountersignError) -> String {
        let result = await withCheckedContinuation { continuation in
            recorder.record(content, messageID: messageID) {
                continuation.resume(returning: $0)
            }
        }
        return try result.get()
    }

    // MARK: Sending

    package func configure(_ policy: FlushPolicy, batchEvents: Int, newestFirst: Bool = false) {
        engine.inbox.post(.configure(policy, batchEvents: batchEvents, newestFirst: newestFirst))
    }

    package func sendSoon() { engine.inbox.post(.sendSoon) }

    /// Writes records that are only in memory to disk, and stops all work.
    package func close() async { await Self.close(recorder, engine, storage) }

    private static func close(_ recorder: Recorder, _ engine: DeliveryEngine, _ storage: Storage) async {
        await recorder.close()
        await engine.stop()
        await storage.close()
    }
}

// MARK: - Sessions

extension DeliveryPipeline {
    package enum SessionEvent: Sendable {
        /// The app became active, at its start or later.
        case appActive
        case appInBackground
        /// The session lasted this many seconds. Records made in the handler still belong to the session.
        case ended(after: TimeInterval)
        /// Records made in the handler belong to the new session.
        case began
    }

    package func onSessionEvent(_ handler: @escaping @Sendable (SessionEvent) -> Void) {
        sessionHandler.withLock { $0.call = handler }
    }

    private func notify(_ event: SessionEvent) {
        sessionHandler.withLock { $0.call }?(event)
    }

    package func startSession() {
        let (ended, id) = session.withLock { session in
            (session.begin(now: clock.now, uptime: clock.uptime), session.id)
        }
        begin(id, after: ended)
    }

    package func endSession() {
        let ended = session.withLock { $0.end(uptime: clock.uptime) }
        if let ended { notify(.ended(after: ended)) }
    }

    private func begin(_ id: String, after ended: TimeInterval?) {
        if let ended { notify(.ended(after: ended)) }
        recorder.setSession(id)
        notify(.began)
        engine.inbox.post(.sessionStarted)
    }

    package func enterBackground() {
        session.withLock { $0.enterBackground(uptime: clock.uptime) }
        notify(.appInBackground)
        engine.inbox.post(.enteredBackground)
    }

    /// Asks the system not to suspend the process until records are stored and sent. When the system's time limit
    /// expires, cancels the current request. New requests fail until the app returns, for a minute at most.
    func enterBackground(holding activity: BackgroundAssertion.Activity?) {
        guard let activity else { return enterBackground() }
        let assertion = BackgroundAssertion(activity) { [uploads] in uploads.interrupt() }
        enterBackground()
        Task { [recorder, engine] in
            await recorder.drain()
            await engine.idle()
            assertion.end()
        }
    }

    package func enterForeground() {
        uploads.resume()
        let (change, id) = session.withLock { session in
            (session.enterForeground(uptime: clock.uptime, now: clock.now), session.id)
        }
        engine.inbox.post(.enteredForeground)
        notify(.appActive)
        if change.isNew { begin(id, after: change.ended) }
    }
}
