internal import CountersignCore
public import CountersignTransport
internal import Foundation

/// Records locations and uploads them, with retries. Refreshes the access token of the uploads.
///
/// ```swift
/// var configuration = LocationConfiguration()
/// configuration.http.url = "https://app.your.server.com/users/locations"
/// configuration.authorization.accessToken = token
/// configuration.authorization.refreshToken = refreshToken
/// configuration.authorization.refreshUrl = "https://auth.your.server.com/tokens"
/// configuration.authorization.refreshPayload = ["refresh_token": "{refreshToken}"]
/// let client = try LocationClient(configuration: configuration)
/// try await client.record(Location(latitude: 46.05, longitude: 14.51, timestamp: Date()))
/// ```
///
/// All methods may be called from any thread. A record stays on disk, as it was recorded, until a server has accepted
/// it or a limit deletes it. URL, header fields, parameters and token are those of the moment of sending.
public final class LocationClient: Sendable {
    let pipeline: DeliveryPipeline
    private let tokens: AccessTokens
    let destination: LocationDestination
    let state: Lock<State>
    /// The member `extras.context` of records.
    let facts: JSONValue
    private let settingsFile: SettingsFile?
    /// The serial queue for closures of the app. A slow closure delays only later closures.
    let callbacks = DispatchQueue(label: "countersign.callbacks")
    /// Held while the configuration changes. Recursive, because the app's closure may change the configuration too.
    let changing = NSRecursiveLock()

    struct State {
        var configuration: LocationConfiguration
        /// Incremented by each `stop()`, which ends earlier recordings.
        var epoch = 0
        var source: Task<Void, Never>?
        /// Passes the tokens of each new configuration to `AccessTokens`, in the order of the changes.
        var handover: Task<Void, Never>?
        /// Above 0 while configurations wait for `handover`: the tokens in `configuration` are then newer than those
        /// in use.
        var handovers = 0
    }

    /// Makes a client. The store is opened in the background.
    ///
    /// - Parameters:
    ///   - configuration: The client's configuration.
    ///   - keepsTokens: True to use the tokens of the last run even if the configuration has none.
    ///   - transport: The HTTP transport; nil for `URLSession` on Apple platforms and libcurl on Linux.
    ///   - clock: The clock, replaceable in tests.
    /// - Throws: `CountersignError` with `invalidConfiguration` if the configuration cannot work.
    public convenience init(
        configuration: LocationConfiguration, keepsTokens: Bool = false,
        transport: (any HTTPTransport)? = nil, clock: any ClientClock = SystemClock()
    ) throws(CountersignError) {
        try self.init(
            configuration: configuration, keepsTokens: keepsTokens, transport: transport, clock: clock,
            random: { Double.random(in: 0...1) })
    }

    private struct WeakClient {
        weak var value: LocationClient?
    }

    package enum StoredSettings: Sendable {
        /// Stored settings are ignored, and no settings are stored.
        case ignored
        /// The settings of the configuration replace the stored settings.
        case replaced
        /// Stored settings replace those of the configuration. Settings that are not stored, such as tokens, stay.
        case kept
    }

    package init(
        configuration given: LocationConfiguration, keepsTokens: Bool,
        storedSettings: StoredSettings = .ignored, transport: (any HTTPTransport)?,
        clock: any ClientClock, random: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }
    ) throws(CountersignError) {
        var configuration = given
        if storedSettings != .ignored {
            let file = SettingsFile(directory: given.folder.directory, log: given.log)
            if storedSettings == .kept { file.restore(&configuration) }
            settingsFile = file
        } else {
            settingsFile = nil
        }
        try configuration.validate()
        facts = .object(configuration.context.json)
        let folder = configuration.folder
        try folder.validate()
        var delivery = DeliverySettings(directory: folder.directory)
        delivery.limits = configuration.persistence.limits
        delivery.flushPolicy = configuration.http.flushPolicy
        delivery.batchEvents = configuration.http.batchEvents
        delivery.requestTimeout = configuration.http.timeout
        delivery.networkRetry = configuration.networkRetry
        delivery.log = configuration.log

        let state = Lock(State(configuration: configuration))
        self.state = state
        destination = LocationDestination(settings: configuration.destinationSettings)
        // Set when the client exists. `tokens` and the transport, which call the client, are created before it.
        let made = Lock(WeakClient())
        tokens = AccessTokens(
            configuration: configuration.authorization, isSparse: keepsTokens,
            dependencies: AccessTokens.Dependencies(
                store: folder.makeTokenStore(configuration.tokenStore, log: configuration.log),
                lockFile: folder.directory.appendingPathComponent("tokens.lock"),
                // A transport of its own, so that a refresh does not wait for an upload.
                transport: transport ?? makeDefaultTransport(), clock: clock, random: random,
                timeout: min(configuration.http.timeout, AccessTokens.longestExchange),
                log: configuration.log,
                common: {
                    let http = state.withLock { $0.configuration.http }
                    return (http.headers, http.endpoint)
                },
                report: { [callbacks] event in
                    guard let handler = state.withLock({ $0.configuration.onAuthorization }) else { return }
                    callbacks.async { handler(event) }
                },
                changed: { generation in
                    made.withLock { $0.value }?.pipeline.engine.post {
                        [.changed(.anonymous, generation: generation)]
                    }
                },
                adopted: { accessToken, refreshToken in
                    state.withLock { state in
                        guard state.handovers == 0 else { return }
                        state.configuration.authorization.accessToken = accessToken
                        state.configuration.authorization.refreshToken = refreshToken
                    }
                }))
        pipeline = try DeliveryPipeline(
            settings: delivery, storage: delivery.makeStorage(clock: clock), destination: destination,
            credentials: tokens,
            transport: ObservedTransport(transport: transport ?? makeDefaultTransport()) { result in
                made.withLock { $0.value }?.exchanged(result)
            }, clock: clock, random: random)
        made.withLock { $0.value = self }
        post(configuration)
        configuration.authorization.warnAboutPayload(log: configuration.log)
        save(configuration)
        Task { [tokens] in await tokens.prepare() }
    }

    private func save(_ configuration: LocationConfiguration) {
        guard let settingsFile else { return }
        pipeline.storage.submit { _ in settingsFile.save(configuration) }
    }

    deinit {
        state.withLock { $0.source }?.cancel()
        Task { [tokens] in await tokens.close() }
    }

    /// Ends all work. Waits for a running refresh, because its response has the next token.
    public func close() async {
        stop()
        await pipeline.close()
        await tokens.close()
    }

    // MARK: Settings

    /// The present configuration.
    public var configuration: LocationConfiguration { state.withLock { $0.configuration } }

    /// Changes the configuration. Limits, directories, `tokenStore`, `networkRetry`, `context` and `log` take full
    /// effect only in a new client.
    ///
    /// Tokens that are nil in the new configuration stay. A pair of tokens that the app has passed earlier is ignored.
    ///
    /// - Parameter change: Changes the configuration. Called once, on the caller's thread.
    /// - Throws: `CountersignError` with `invalidConfiguration`; nothing has changed then.
    public func update(_ change: (inout LocationConfiguration) -> Void) async throws(CountersignError) {
        try self.change(change)
        await handover()
    }

    /// Changes the configuration without waiting until new tokens are on disk. `sync()` and `accessToken(replacing:)`
    /// wait for those tokens. Automatic uploads may use the earlier tokens until then.
    package func change(_ change: (inout LocationConfiguration) -> Void) throws(CountersignError) {
        changing.lock()
        defer { changing.unlock() }
        var configuration = configuration
        change(&configuration)
        try configuration.validate()
        let authorization = configuration.authorization
        if authorization.refreshPayload != self.configuration.authorization.refreshPayload {
            authorization.warnAboutPayload(log: configuration.log)
        }
        state.withLock { $0.handovers += 1 }
        apply { $0 = configuration }
        state.withLock { holder in
            holder.handover = Task { [state, tokens, previous = holder.handover] in
                await previous?.value
                await tokens.configure(authorization)
                state.withLock { $0.handovers -= 1 }
                await tokens.reportTokens()
            }
        }
    }

    func handover() async {
        await state.withLock { $0.handover }?.value
    }

    func apply(_ change: (inout LocationConfiguration) -> Void) {
        let configuration = state.withLock { state in
            change(&state.configuration)
            return state.configuration
        }
        destination.update(configuration.destinationSettings)
        post(configuration)
        save(configuration)
    }

    private func post(_ configuration: LocationConfiguration) {
        pipeline.configure(
            configuration.http.flushPolicy, batchEvents: configuration.http.batchEvents,
            newestFirst: configuration.persistence.locationsOrderDirection == .newestFirst)
    }

    // MARK: Tokens

    /// Whether requests can be authorized, and the reason if not. Waits until stored tokens were read.
    public var authorizationState: AuthorizationState {
        get async {
            await handover()
            await tokens.prepare()
            return await tokens.state
        }
    }

    /// Returns the access token for a request of the app's own, so that the app and the SDK never refresh at the same
    /// time.
    ///
    /// - Parameter rejected: A token that a server has rejected, or nil.
    /// - Returns: A token that was not rejected; refreshed if necessary. It is a credential: never log it.
    /// - Throws: `CountersignError` with `notAuthorized`. Try again after `authorizationState.retryIn` if not nil.
    public func accessToken(replacing rejected: String? = nil) async throws(CountersignError) -> String {
        await handover()
        await tokens.prepare()
        var generation: Int?
        if let rejected { generation = await tokens.generation(of: rejected) }
        switch await tokens.authorize(rejected: generation) {
        case .ready(let credential):
            guard let token = credential.token else {
                throw CountersignError(.notAuthorized, "the app has set no access token")
            }
            return token.rawValue
        case .pending: throw CountersignError(.notAuthorized, "the access token is being refreshed")
        case .doubtful(_, let problem), .unavailable(let problem, _):
            throw CountersignError(.notAuthorized, "\(problem.code): \(problem.reason)")
        }
    }

    /// Removes the tokens, such as when the user logs out. Records stay.
    public func forgetTokens() async {
        await handover()
        state.withLock { state in
            state.configuration.authorization.accessToken = nil
            state.configuration.authorization.refreshToken = nil
        }
        await tokens.removeAll()
    }
}
