public import CountersignCore
public import CountersignTransport

/// Records the actions of an app's users and delivers each event exactly once, with its user's token, to a gateway.
///
/// ```swift
/// let client = try CountersignClient(
///     configuration: CountersignConfiguration(endpoint: url, writeKey: "wk_…"))
/// client.identify(userID: "user-1", token: tokenFromBackend)
/// client.track("Order Completed", properties: ["total": 42.5])
/// ```
///
/// All methods may be called from any thread. Methods that are not `async` return at once: serialization and I/O happen
/// in the background. While more than 64 events or 256 KiB are only in memory, each call waits up to 5 ms for the
/// background thread. Events on disk survive crashes until a server accepts them or `QueueLimits` evicts them.
public final class CountersignClient: Sendable {
    package let pipeline: DeliveryPipeline
    let tokens: UserTokenSource
    private let dialect: any EventDialect
    let log: CountersignLog?
    let stored: SignedUserTokens
    /// The current user, and log-outs that are not yet in `user.json`. `recorder` stores both before later events.
    let identity: Lock<StoredUser.Identity>

    var recorder: Recorder { pipeline.recorder }

    /// Creates a client. Opens the queue file in the background and begins a session.
    ///
    /// - Parameters:
    ///   - configuration: The client's configuration.
    ///   - transport: The HTTP transport; nil for `URLSession` on Apple platforms and libcurl on Linux.
    ///   - clock: The clock, replaceable in tests.
    /// - Throws: `CountersignError` with `invalidConfiguration` if the configuration cannot work.
    public convenience init(
        configuration: CountersignConfiguration, transport: (any HTTPTransport)? = nil,
        clock: any ClientClock = SystemClock()
    ) throws(CountersignError) {
        let dialect = NativeDialect(
            endpoint: configuration.endpoint, writeKey: configuration.writeKey,
            timeout: configuration.requestTimeout, context: configuration.context)
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
        let logOuts = try? users.load()
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
        if logOuts == nil {
            let isUnsigned = configuration.tokenProvider == nil && !before.isSigned
            stored.replaceDamagedFile(exceptLogOutOf: isUnsigned ? before.user : nil)
        }
        if logOuts?.hasFormerUser == true {
            stored.tokens.submit("user could not be removed") { [users] _, _ in try users.change { _ in } }
        }
        resume(logOuts, and: before.logOuts)
    }

    // MARK: Users

    /// Sets the current user.
    ///
    /// Events recorded earlier keep their user and are sent with that user's token. A different user begins a
    /// new session. For the current user the call only replaces the token. An event is recorded if the user
    /// changes or `traits` is not empty.
    ///
    /// The user persists across starts of the app until `logOut()`, `wipeData()` or another call.
    ///
    /// - Parameters:
    ///   - userID: The ID in the app's own systems. Not empty, and byte for byte the token's `sub` claim.
    ///   - token: The token from the app's backend; nil if the app has no token, or if a token provider returns it.
    ///   - traits: The user's traits.
    public func identify(userID: String, token: String? = nil, traits: JSONObject = [:]) {
        identify(userID: userID, token: token, traits: traits, stored: nil)
    }

    /// Calls `stored` once, on any thread, with the ID of the event on disk or with an error. The ID is nil if no event
    /// was recorded. Without `stored`, an event that cannot be written now is written later.
    package func identify(
        userID: String, token: String?, traits: JSONObject,
        stored: (@Sendable (Result<String?, CountersignError>) -> Void)?
    ) {
        guard setUser(userID, token: token) || !traits.isEmpty, !userID.isEmpty else {
            stored?(.success(nil))
            return
        }
        let completion = stored.map { stored -> EventRecord.Completion in { stored($0.map { $0 }) } }
        recorder.record(event(.identify, payload: traits), owner: userID, completion: completion)
    }

    /// Sets the current user without recording an event. Returns true if the user has changed.
    @discardableResult
    package func setUser(_ userID: String, token: String?) -> Bool {
        guard !userID.isEmpty else {
            log?(.warning, "a user without an id is ignored", [:])
            return false
        }
        // End the session first. An event that a handler of `SessionEvent.ended` records belongs to the earlier user.
        if !recorder.isUser(userID) { endSession() }
        let signed = token.map { SignedToken($0) }
        let (_, isAnother, revision) = recorder.setUser(userID) { isAnother in
            if let signed = signed ?? nil { stored.keep(signed, of: userID) }
            return identity.withLock { identity in
                identity.set(userID, isSigned: signed ?? nil != nil || (!isAnother && identity.isSigned))
                return identity.bytes
            }
        }
        // Set the token first, because the new session sends at once.
        if let signed { set(signed, for: userID, at: revision) }
        if isAnother { startSession() }
        return isAnother
    }

    /// Stores the current user again, such as after an opt-out has ended.
    func saveIdentity() {
        recorder.saveIdentity { userID in
            identity.withLock { identity in
                identity.change(to: userID)
                return identity.bytes
            }
        }
    }

    /// Replaces the token of the current user.
    ///
    /// Events that wait for a token are sent at once. Does nothing without a user.
    ///
    /// - Parameter token: The token exactly as the backend returned it.
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
        guard let userID = user.id else {
            log?(.warning, "a token without a user is ignored", [:])
            return
        }
        set(signed, for: userID, at: user.revision)
    }

    private func set(_ token: SignedToken?, for userID: String, at revision: Int) {
        pipeline.engine.post { [tokens] in
            guard let token else { return await tokens.rejectMalformed(for: UserKey(userID)) }
            return await tokens.take(token, for: UserKey(userID), at: revision)
        }
    }

    /// The current user's ID, from the last run unless set in this run; nil without a user.
    public var userID: String? { recorder.userID }

    // MARK: Events

    /// Records an event and returns at once.
    ///
    /// - Parameters:
    ///   - event: The event's name, such as `Order Completed`.
    ///   - properties: The event's properties. A number that is not finite is stored as `null`.
    public func track(_ event: String, properties: JSONObject = [:]) {
        recorder.record(self.event(.track, name: event, payload: properties))
    }

    /// Records an event of any kind, and returns when it is on disk.
    ///
    /// - Parameters:
    ///   - event: The event's name, or the name of the page or screen.
    ///   - kind: The kind of event.
    ///   - properties: The event's properties.
    /// - Returns: The event's message id.
    /// - Throws: `CountersignError` if the event was not stored in the queue.
    @discardableResult
    public func record(
        _ event: String, kind: EventKind = .track, properties: JSONObject = [:]
    ) async throws(CountersignError) -> String {
        try await pipeline.store(self.event(kind, name: event, payload: properties))
    }

    /// Records in the order of the calls. Calls `stored` once, on any thread, when the event is on disk or with the
    /// error.
    package func record(
        _ event: String, kind: EventKind, properties: JSONObject,
        stored: @escaping @Sendable (Result<String, CountersignError>) -> Void
    ) {
        recorder.record(self.event(kind, name: event, payload: properties), completion: stored)
    }

    private func event(_ kind: EventKind, name: String? = nil, payload: JSONObject) -> Event {
        Event(kind, name: name, payload: payload, dialect: dialect)
    }

    /// Records an event of a dialect-specific kind.
    package func record(_ kind: EventKind, payload: JSONObject) {
        recorder.record(event(kind, payload: payload))
    }

    // MARK: Sending

    /// Sends all events that can be sent now, and returns when done.
    ///
    /// Ends back-off delays and resumes paused users. Overlapping calls share the work.
    ///
    /// - Returns: The outcome of each request.
    @discardableResult
    public func flush() async -> FlushResult {
        TokenProviderCall.isInside ? .calledFromTokenProvider : await pipeline.engine.flush()
    }

    /// Writes events that are only in memory to disk, and stops all work. Nothing is recorded afterwards. The next
    /// client with this queue sends the remaining events.
    public func close() async {
        await pipeline.close()
    }

    // MARK: Sessions

    /// Begins a new session, and retries events that are paused after too many rejected tokens. Automatic on iOS.
    /// Elsewhere the app calls this method when the user begins to use the app.
    public func startSession() { pipeline.startSession() }

    /// Ends the session, on platforms without lifecycle notifications.
    ///
    /// Later events still have the session's ID. The next session begins with `startSession()`, with another user, or
    /// when the app enters the foreground. Sending is not affected.
    public func endSession() { pipeline.endSession() }

    /// Reports that the app went to the background. Automatic on iOS. Sends events if `FlushPolicy.onBackground` is
    /// true, and defers reports of authentication failures until the app is in the foreground again.
    public func enterBackground() { pipeline.enterBackground() }

    /// Reports that the app is in the foreground again. Automatic on iOS.
    ///
    /// Begins a new session after more than `CountersignConfiguration.sessionTimeout` in the background. The first
    /// call also begins one if the client is older than `sessionTimeout`, because the system had then started the app
    /// in the background.
    public func enterForeground() { pipeline.enterForeground() }

    // MARK: Failures

    /// Authentication failures. Starts with the latest one if it is unresolved. Ends when the client is closed.
    ///
    /// Failures with equal user, token, code, reason and `isOptional` count as one. A failure is reported at once and,
    /// while unresolved, again at each start of a session and at most every five minutes. `occurrences` counts all
    /// repetitions. Failures in the background are reported when the app is in the foreground again.
    public var authenticationFailures: AsyncStream<AuthenticationFailure> {
        pipeline.engine.failures.stream()
    }

    /// Sets the closure called for each authentication failure; nil removes it. Called on a thread of the SDK, as
    /// often as `authenticationFailures` reports. An earlier unresolved failure is reported during this call.
    public func onAuthenticationFailure(_ handler: (@Sendable (AuthenticationFailure) -> Void)?) {
        pipeline.engine.failures.setHandler(handler)
    }
}
