internal import CountersignCore
package import CountersignTransport
package import Foundation

/// Keeps records on disk until a server has taken them: what every client is built on.
///
/// It knows neither what a record says nor where it goes. A destination makes requests of records, and a credential source
/// has what proves whose they are. Records have an owner, who is nobody, a user or a project: those of one owner wait for a
/// credential without holding up those of another.
package final class DeliveryPipeline: Sendable {
    package let storage: Storage
    package let recorder: Recorder
    package let engine: DeliveryEngine
    package let clock: any ClientClock
    package let settings: DeliverySettings
    let session: Lock<SessionTracker>
    let uploads: InterruptibleTransport
    private let lifecycle = Lock<LifecycleObserver?>(nil)
    private let sessionHandler = Lock(SessionHandler())

    private struct SessionHandler {
        var call: (@Sendable (SessionEvent) -> Void)?
    }

    var log: CountersignLog? { settings.log }

    /// Makes a pipeline. The queue file is opened in the background, and a session begins. Throws `CountersignError`
    /// with `invalidConfiguration` if the settings cannot work.
    package convenience init(
        settings: DeliverySettings, storage: Storage, destination: any Destination,
        credentials: any CredentialSource, transport: (any HTTPTransport)?,
        clock: any ClientClock, random: @escaping @Sendable () -> Double
    ) throws(CountersignError) {
        try self.init(
            settings: settings, storage: storage, destination: destination, credentials: credentials,
            owner: nil, identity: nil, transport: transport, clock: clock, random: random)
    }

    /// As above, with the owner to begin with, and the file that `Recorder.saveIdentity` writes.
    package init(
        settings: DeliverySettings, storage: Storage, destination: any Destination,
        credentials: any CredentialSource, owner: String?, identity: SlotFile?,
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
        let observer = LifecycleObserver(
            background: { [weak self] in self?.enterBackground(holding: BackgroundAssertion.system) },
            foreground: { [weak self] in self?.enterForeground() },
            active: { [weak self] in self?.tell(.appActive) })
        lifecycle.withLock { $0 = observer }
    }

    deinit {
        Task { [engine, recorder, storage] in
            await recorder.close()
            await engine.stop()
            await storage.close()
        }
    }

    // MARK: Records

    /// Stores a record; when it returns, the record is on disk.
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

    /// As `store`, in the order of the calls. `stored` is called once, on any thread.
    package func store(
        _ content: any RecordContent, messageID: String,
        stored: @escaping @Sendable (Result<String, CountersignError>) -> Void
    ) {
        recorder.record(content, messageID: messageID, completion: stored)
    }

    /// Does this in the background, one after the other.
    package func perform(_ work: @escaping @Sendable () -> Void) {
        storage.submit { _ in work() }
    }

    /// Does this between two steps of the engine, in the order in which it was said.
    package func post(_ work: @escaping CredentialWork) {
        engine.post(work)
    }

    // MARK: Sending

    /// Sends everything that can be sent now, and returns when that is done. What the recorder has in memory is on its way too:
    /// whoever claims events writes it first.
    package func flush() async -> FlushResult { await engine.flush() }

    /// Sends in another way from now on.
    package func configure(_ policy: FlushPolicy, batchEvents: Int, newestFirst: Bool = false) {
        engine.inbox.post(.configure(policy, batchEvents: batchEvents, newestFirst: newestFirst))
    }

    /// Sends what waits without waiting for more.
    package func sendSoon() { engine.inbox.post(.sendSoon) }

    /// Stores what is still in memory and ends all work.
    package func close() async {
        await recorder.close()
        await engine.stop()
        await storage.close()
    }

    /// What failures of credentials there are.
    package var failures: Broadcast<AuthenticationFailure> { engine.failures }
}

// MARK: - Sessions

extension DeliveryPipeline {
    /// What clients record of sessions.
    package enum SessionEvent: Sendable {
        /// The app has come to the front, at its start or later.
        case appActive
        case appInBackground
        /// After so many seconds. What is recorded now still belongs to it.
        case ended(after: TimeInterval)
        /// What is recorded now belongs to it.
        case began
    }

    package func onSessionEvent(_ handler: @escaping @Sendable (SessionEvent) -> Void) {
        sessionHandler.withLock { $0.call = handler }
    }

    private func tell(_ event: SessionEvent) {
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
        if let ended { tell(.ended(after: ended.duration)) }
    }

    private func begin(_ id: String, after ended: SessionTracker.Ended?) {
        if let ended { tell(.ended(after: ended.duration)) }
        recorder.setSession(id)
        tell(.began)
        engine.inbox.post(.sessionStarted)
    }

    package func enterBackground() {
        session.withLock { $0.enterBackground(uptime: clock.uptime) }
        tell(.appInBackground)
        engine.inbox.post(.enteredBackground)
    }

    /// As `enterBackground()`, and keeps the system from suspending the process until what was recorded is on disk and what can
    /// be sent is sent, or until the system's patience is over: then the request that is under way is broken off, and none
    /// begins before the app is back.
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
        tell(.appActive)
        if change.isNew { begin(id, after: change.ended) }
    }
}
