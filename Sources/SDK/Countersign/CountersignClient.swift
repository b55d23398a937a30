public import CountersignCore
public import CountersignTransport

/// Records what users of an app do, and delivers it to a gateway: each event exactly once, and under its user's token.
///
/// ```swift
/// let client = try CountersignClient(
///     configuration: CountersignConfiguration(endpoint: url, writeKey: "wk_…"))
/// client.identify(userID: "user-1", token: tokenFromBackend)
/// client.track("Order Completed", properties: ["total": 42.5])
/// ```
///
/// All methods may be called from any thread. Methods that are not `async` return at once: serialization and I/O happen in the
/// background. The exception is a burst. While more than 64 events or 256 KiB are in memory only, each call waits for the
/// background thread, for 5 ms at most. Events on disk survive crashes until a server accepts them or `QueueLimits` evicts
/// them.
public final class CountersignClient: Sendable {
    package let pipeline: DeliveryPipeline
    let tokens: UserTokenSource
    private let dialect: any EventDialect
    let log: CountersignLog?
    let stored: SignedUserTokens
    /// The user as `recorder` writes it down before the events that follow; changed under its lock.
    let identity: Lock<StoredUser.Identity>

    var recorder: Recorder { pipeline.recorder }

    /// Makes a client. The queue file is opened in the background, and a session begins.
    ///
    /// - Parameters:
    ///   - configuration: How it works.
    ///   - transport: The way to the network; nil for `URLSession` on Apple platforms and libcurl on Linux.
    ///   - clock: The time, for tests.
    /// - Throws: `CountersignError` with `invalidConfiguration` if the configuration cannot work.
    public convenience init(
        configuration: CountersignConfiguration, transport: (any HTTPTransport)? = nil,
        clock: any ClientClock = SystemClock()
    ) throws(CountersignError) {
        let dialect = NativeDialect(
            endpoint: configuration.endpoint, writeKey: configuration.writeKey,
            timeout: configuration.requestTimeout)
        try self.init(configuration: configuration, dialect: dialect, transport: transport, clock: clock)
    }

    package init(
        configuration: CountersignConfiguration, dialect: any EventDialect,
        scheme: Credential.Scheme = .bearer, transport: (any HTTPTransport)? = nil,
        clock: any ClientClock = SystemClock(),
        random: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }
    ) throws(CountersignError) {
        try configuration.validate()
        self.dialect = dialect
        log = configuration.log
        let settings = configuration.deliverySettings
        let users = StoredUser(directory: settings.directory, writeKey: configuration.writeKey)
        let storage = settings.makeStorage(clock: clock)
        stored = SignedUserTokens(
            tokens: StoredTokens(store: configuration.makeTokenStore(), storage: storage, log: log),
            users: users)
        let (before, isFormer) = users.loadIdentity()
        let logOuts = users.load()
        identity = Lock(before)
        tokens = UserTokenSource(
            settings: UserTokenSource.Settings(
                scheme: scheme, provider: configuration.tokenProvider,
                timeout: configuration.tokenProviderTimeout, retry: configuration.networkRetry),
            stored: stored, signed: before.signedUsers, clock: clock, random: random)
        pipeline = try DeliveryPipeline(
            settings: settings, storage: storage, destination: dialect, credentials: tokens,
            owner: before.user, identity: users.file, transport: transport, clock: clock, random: random)
        if isFormer { saveIdentity() }
        if logOuts.hasFormerUser {
            stored.tokens.submit("user could not be removed") { [users] _, _ in try users.change { _ in } }
        }
        if !logOuts.left.isEmpty { Task { [stored] in await stored.removeSettled() } }
        for user in Set((logOuts.leaving + before.logOuts.map(\.user)).map { UserKey($0) }) {
            finishLogOut(of: user)
        }
    }

    /// Does the rest of a log-out that the last run of the app did not finish.
    private func finishLogOut(of user: UserKey) {
        let count = recorder.user.count
        if let userID = user.userID { keepLogOut(of: userID) }
        // Nothing here holds the client: one that is let go of closes, and the next one does it.
        Task { [engine = pipeline.engine, tokens] in
            await engine.perform { await tokens.beginLeaving(user, at: count) }
            await Self.finishLogOut(of: user, tokens: tokens, engine: engine) { await engine.flush() }
        }
    }

    /// Sends what is left under the user's token, and then forgets that.
    @discardableResult
    private static func finishLogOut(
        of user: UserKey, tokens: UserTokenSource, engine: DeliveryEngine, flush: () async -> FlushResult
    ) async -> FlushResult {
        let result = await flush()
        // After a client that was closed the next one does it.
        if result.ending != .closed { await engine.perform { await tokens.leave(user) } }
        return result
    }

    // MARK: Users

    /// Says who the user is from now on.
    ///
    /// Events that were recorded before stay with the user they were recorded for, and are sent under that user's token.
    /// Another user begins a new session. For the user who is current already this only replaces the token; an event is
    /// recorded when the user is another one or when there are traits.
    ///
    /// The user stays until `logOut()`, `wipeData()` or another call, over later starts of the app too.
    ///
    /// - Parameters:
    ///   - userID: The id in the app's own systems. Not empty, and the same as `sub` of the token, byte for byte.
    ///   - token: What the app's backend signed for this user; nil if there is none, or if there is a token provider.
    ///   - traits: What is known of the user.
    public func identify(userID: String, token: String? = nil, traits: JSONObject = [:]) {
        identify(userID: userID, token: token, traits: traits, stored: nil)
    }

    /// As `identify`. `stored` is called once, on any thread: with the event's id when the event is on disk, with nil if
    /// there was nothing to record, or with the reason why the event is not in the queue. Without `stored`, an event that
    /// cannot be written now is written later.
    package func identify(
        userID: String, token: String?, traits: JSONObject,
        stored: (@Sendable (Result<String?, CountersignError>) -> Void)?
    ) {
        guard setUser(userID, token: token) || !traits.isEmpty, !userID.isEmpty else {
            stored?(.success(nil))
            return
        }
        let completion = stored.map { stored -> Recorder.Completion in { stored($0.map { $0 }) } }
        recorder.record(event(.identify, payload: traits), owner: userID, completion: completion)
    }

    /// As `identify`, without an event. Returns true if the user is another one than before.
    @discardableResult
    package func setUser(_ userID: String, token: String?) -> Bool {
        guard !userID.isEmpty else { return false }
        // Whoever hears of it records that for the user whose session it was.
        if !recorder.isUser(userID) { endSession() }
        let signed = token.map { SignedToken($0) }
        let (_, isAnother, count) = recorder.setUser(userID) { isAnother in
            if let signed = signed ?? nil { stored.keep(signed, of: userID) }
            return identity.withLock { identity in
                identity.set(userID, isSigned: signed ?? nil != nil || (!isAnother && identity.isSigned))
                return identity.bytes
            }
        }
        // First the token: the session that begins sends at once.
        if let signed { set(signed, for: userID, at: count) }
        if isAnother { startSession() }
        return isAnother
    }

    /// Has the present user written down once more, and no log-out: such as after all data was removed.
    func saveIdentity() {
        recorder.saveIdentity { [identity] userID in
            identity.withLock { identity in
                if UserKey(identity.user) != UserKey(userID) {
                    identity = StoredUser.Identity(user: userID)
                }
                return identity.bytes
            }
        }
    }

    /// Writes a log-out into `user.json`. Until then the identity has it.
    private func keepLogOut(of userID: String) {
        stored.keepLogOut(of: userID) { [recorder, identity] in
            recorder.saveIdentity { _ in
                identity.withLock { identity in
                    identity.remove(logOutOf: userID)
                    return identity.bytes
                }
            }
        }
    }

    /// Hands over a new token of the current user.
    ///
    /// What waits for one is sent at once. Without a user nothing happens.
    ///
    /// - Parameter token: The token exactly as the backend made it.
    public func setToken(_ token: String) {
        let signed = SignedToken(token)
        let user = recorder.saveIdentity { userID in
            identity.withLock { identity in
                if let signed, let userID {
                    stored.keep(signed, of: userID)
                    identity.set(userID, isSigned: true)
                }
                return identity.bytes
            }
        }
        if let userID = user.id { set(signed, for: userID, at: user.count) }
    }

    private func set(_ token: SignedToken?, for userID: String, at count: Int) {
        pipeline.post { [tokens] in
            guard let token else { return await tokens.refuseMalformed(for: UserKey(userID)) }
            return await tokens.take(token, for: UserKey(userID), at: count)
        }
    }

    /// The user whom events are recorded for, from the last run if nobody was identified in this one; nil if there is none.
    public var userID: String? { recorder.userID }

    /// Ends the user's time with the app: sends what is left under the user's token, and then forgets that token.
    ///
    /// Events that are recorded after the call have no user. What cannot be sent now waits until the same user comes back
    /// with a token, in later runs of the app too; `CountersignSnapshot.parked` says `logged_out`. Of a user who never had a
    /// token, in an app without a token provider, it is sent without one. A token that the app hands over for this user
    /// before the method returns is kept.
    ///
    /// - Returns: What was sent.
    @discardableResult
    public func logOut() async -> FlushResult {
        let user = beginLogOut()
        return await Self.finishLogOut(of: user, tokens: tokens, engine: pipeline.engine) { await flush() }
    }

    /// As `logOut`, in the order of the calls: events recorded after it returns have no user. `ended` is called once, on any
    /// thread.
    package func logOut(_ ended: @escaping @Sendable (FlushResult) -> Void) {
        let user = beginLogOut()
        Task {
            ended(
                await Self.finishLogOut(of: user, tokens: tokens, engine: pipeline.engine) { await flush() })
        }
    }

    private func beginLogOut() -> UserKey {
        endSession()
        let (userID, _, count) = recorder.setUser(nil) { _ in
            identity.withLock { identity in
                if let userID = identity.user { keepLogOut(of: userID) }
                identity.logOut()
                return identity.bytes
            }
        }
        let user = UserKey(userID)
        pipeline.post { [tokens] in await tokens.beginLeaving(user, at: count) }
        startSession()
        return user
    }

    // MARK: Events

    /// Records that the user did something, and returns at once.
    ///
    /// - Parameters:
    ///   - event: What it was, such as `Order Completed`.
    ///   - properties: More about it. A number that is not finite is stored as `null`.
    public func track(_ event: String, properties: JSONObject = [:]) {
        recorder.record(self.event(.track, name: event, payload: properties))
    }

    /// Records an event of any kind, and returns when it is on disk.
    ///
    /// - Parameters:
    ///   - event: What it was; for a page or a screen its name.
    ///   - kind: Which kind of event.
    ///   - properties: More about it.
    /// - Returns: The event's message id.
    /// - Throws: `CountersignError`: the event is not in the queue.
    @discardableResult
    public func record(
        _ event: String, kind: EventKind = .track, properties: JSONObject = [:]
    ) async throws(CountersignError) -> String {
        try await pipeline.store(self.event(kind, name: event, payload: properties))
    }

    /// As `record`, in the order of the calls. `stored` is called once, on any thread: with the event's message id when it is on
    /// disk, or with why it is not in the queue.
    package func record(
        _ event: String, kind: EventKind, properties: JSONObject,
        stored: @escaping @Sendable (Result<String, CountersignError>) -> Void
    ) {
        recorder.record(self.event(kind, name: event, payload: properties), completion: stored)
    }

    private func event(_ kind: EventKind, name: String? = nil, payload: JSONObject) -> Event {
        Event(kind, name: name, payload: payload, dialect: dialect)
    }

    /// Records an event of a kind that only the dialect has, and returns at once.
    package func record(_ kind: EventKind, payload: JSONObject) {
        recorder.record(event(kind, payload: payload))
    }

    // MARK: Sending

    /// Sends everything that can be sent now, and returns when that is done.
    ///
    /// It ends waits after failures and resumes what was paused. Calls that overlap share the work.
    ///
    /// - Returns: What became of each request.
    @discardableResult
    public func flush() async -> FlushResult {
        TokenProviderCall.isInside ? .calledFromTokenProvider : await pipeline.flush()
    }

    /// Stores what is still in memory and ends all work. Nothing is recorded after this; what was not sent is sent by the
    /// next client with this queue.
    public func close() async {
        await pipeline.close()
    }

    // MARK: Sessions

    /// Begins a new session: what was paused after too many refused tokens is tried again.
    ///
    /// On iOS the SDK does so itself, as it hears of the app's coming and going; elsewhere the app says when a person begins
    /// to use it.
    public func startSession() { pipeline.startSession() }

    /// Ends the session, such as when a person leaves an app without a system that says so.
    ///
    /// Events that are recorded afterwards still have its id; the next session begins with `startSession()`, with another
    /// user, or when the app comes to the foreground, however soon that is. Nothing is sent or held back by this.
    public func endSession() { pipeline.endSession() }

    /// Says that the app went to the background. The SDK notices this on its own on iOS.
    ///
    /// Events are sent if the flush policy says so. Authentication failures are told when the app is back.
    public func enterBackground() { pipeline.enterBackground() }

    /// Says that the app is in the foreground again. The SDK notices this on its own on iOS.
    ///
    /// A new session begins if it was away for longer than `CountersignConfiguration.sessionTimeout`; so it does if the client was
    /// made longer ago and this is the first time, since the system had then started the app in the background.
    public func enterForeground() { pipeline.enterForeground() }

    /// What clients of other shapes record of sessions.
    package func onSessionEvent(_ handler: @escaping @Sendable (DeliveryPipeline.SessionEvent) -> Void) {
        pipeline.onSessionEvent(handler)
    }

    // MARK: Failures

    /// Authentication failures. Starts with the latest one if it is unresolved.
    ///
    /// The same failure, of one user, token, code and `isOptional`, is reported at once, and again at most once in five minutes
    /// and at the start of a session, while it is unresolved. `occurrences` counts all of them. While the app is in the
    /// background nothing is reported; the failures follow when the app is back.
    public var authenticationFailures: AsyncStream<AuthenticationFailure> { pipeline.failures.stream() }

    /// Sets the closure that is called for each authentication failure, instead of an earlier one; nil for none.
    ///
    /// It is called on a thread of the SDK, as often as `authenticationFailures` says.
    public func onAuthenticationFailure(_ handler: (@Sendable (AuthenticationFailure) -> Void)?) {
        pipeline.failures.setHandler(handler)
    }
}
