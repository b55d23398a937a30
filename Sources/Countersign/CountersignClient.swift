public import CountersignCore
internal import Foundation

/// Records what users of an app do, and delivers it to a gateway: each event exactly once, and under its user's token.
///
/// ```swift
/// let client = try CountersignClient(
///     configuration: CountersignConfiguration(endpoint: url, writeKey: "wk_…"))
/// client.identify(userID: "user-1", token: tokenFromBackend)
/// client.track("Order Completed", properties: ["total": 42.5])
/// ```
///
/// All methods may be called from any thread. Those that are not `async` return at once: rendering, disk and network are
/// elsewhere. What the disk has is not lost, whatever happens to the app or the server, until a server has taken it or a
/// limit of `QueueLimits` pushes it out.
public final class CountersignClient: Sendable {
    private let configuration: CountersignConfiguration
    private let storage: Storage
    private let recorder: Recorder
    private let engine: DeliveryEngine

    /// Makes a client. The queue file is opened in the background.
    ///
    /// - Parameters:
    ///   - configuration: How it works.
    ///   - transport: The way to the network; nil for `URLSession` on Apple platforms and libcurl on Linux.
    ///   - clock: The time, for tests.
    /// - Throws: `CountersignError` with `invalidConfiguration` if the configuration cannot work.
    public convenience init(
        configuration: CountersignConfiguration, transport: (any HTTPTransport)? = nil,
        clock: any ClientClock = SystemClock()
    ) throws {
        let dialect = NativeDialect(
            endpoint: configuration.endpoint, writeKey: configuration.writeKey,
            timeout: configuration.requestTimeout)
        try self.init(configuration: configuration, dialect: dialect, transport: transport, clock: clock)
    }

    package init(
        configuration: CountersignConfiguration, dialect: any DeliveryDialect,
        transport: (any HTTPTransport)? = nil, clock: any ClientClock = SystemClock(),
        random: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }
    ) throws {
        try configuration.validate()
        self.configuration = configuration
        storage = Storage(
            directory: configuration.instanceDirectory, limits: configuration.limits, clock: clock)
        engine = DeliveryEngine(
            configuration: configuration, storage: storage, dialect: dialect,
            transport: transport ?? makeDefaultTransport(), clock: clock, random: random)
        recorder = Recorder(
            storage: storage, dialect: dialect, limits: configuration.limits, clock: clock,
            sessionID: UUIDv7.make(at: clock.now)
        ) { [inbox = engine.inbox] count in inbox.post(.stored(count)) }
        Task { [engine] in await engine.start() }
    }

    deinit {
        Task { [engine, recorder, storage] in
            await recorder.close()
            await engine.stop()
            await storage.close()
        }
    }

    // MARK: Users

    /// Says who the user is from now on.
    ///
    /// Events that were recorded before stay with the user they were recorded for, and are sent under that user's token.
    /// For the user who is current already this only replaces the token; an event is recorded when the user is another
    /// one or when there are traits.
    ///
    /// - Parameters:
    ///   - userID: The id in the app's own systems. Not empty, and the same as `sub` of the token, byte for byte.
    ///   - token: What the app's backend signed for this user; nil if there is none, or if there is a token provider.
    ///   - traits: What is known of the user.
    public func identify(userID: String, token: String? = nil, traits: [String: JSONValue] = [:]) {
        guard !userID.isEmpty else { return }
        let isAnother = recorder.setUser(userID)
        if let token { set(token, for: userID) }
        if isAnother || !traits.isEmpty { recorder.record(.identify, name: nil, payload: traits) }
    }

    /// Hands over a new token of the current user.
    ///
    /// What waits for one is sent at once. Without a user nothing happens.
    ///
    /// - Parameter token: The token exactly as the backend made it.
    public func setToken(_ token: String) {
        guard let userID = recorder.userID else { return }
        set(token, for: userID)
    }

    private func set(_ text: String, for userID: String) {
        guard let token = SignedToken(text) else { return }
        engine.inbox.post(.token(token, user: UserKey(userID)))
    }

    // MARK: Events

    /// Records that the user did something, and returns at once.
    ///
    /// - Parameters:
    ///   - event: What it was, such as `Order Completed`.
    ///   - properties: More about it. A number that is not finite is stored as `null`.
    public func track(_ event: String, properties: [String: JSONValue] = [:]) {
        recorder.record(.track, name: event, payload: properties)
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
        _ event: String, kind: EventKind = .track, properties: [String: JSONValue] = [:]
    ) async throws -> String {
        try await withCheckedThrowingContinuation { continuation in
            recorder.record(kind, name: event, payload: properties) { continuation.resume(with: $0) }
        }
    }

    // MARK: Sending

    /// Sends everything that can be sent now, and returns when that is done.
    ///
    /// It ends waits after failures and resumes what was paused. Calls that overlap share the work.
    ///
    /// - Returns: What became of each request.
    @discardableResult
    public func flush() async -> FlushResult {
        if TokenProviderCall.isInside {
            return FlushResult(batches: [], ending: .calledFromTokenProvider, queued: 0)
        }
        await recorder.drain()
        return await engine.flush()
    }

    /// What authentication failures there are, each (user, token, code) once, beginning with the last one if it still
    /// stands.
    public var authenticationFailures: AsyncStream<AuthenticationFailure> { engine.failures.stream() }

    /// Sets the closure that is called for each authentication failure, in place of an earlier one; nil for none.
    ///
    /// It is called on a thread of the SDK, and at once if the last failure still stands.
    public func onAuthenticationFailure(_ handler: (@Sendable (AuthenticationFailure) -> Void)?) {
        engine.failures.setHandler(handler)
    }

    /// Stores what is still in memory and ends all work. Nothing is recorded after this; what was not sent is sent by the
    /// next client with this queue.
    public func close() async {
        await recorder.close()
        await engine.stop()
        await storage.close()
    }
}
