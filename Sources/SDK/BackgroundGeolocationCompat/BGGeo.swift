internal import CountersignCore
public import CountersignDelivery
internal import CountersignLocations
package import CountersignTransport
package import Foundation

/// The part of Transistorsoft's background geolocation API that uploads locations, over a `LocationClient`.
///
/// Code that was written for it works with only its import changed. Listeners are called on the main thread, in order, and
/// stay until they are cancelled or `removeListeners()` is called: a subscription that is thrown away does not end.
public final class BGGeo: SettingsHolder, Sendable {
    /// The instance that apps use.
    public static let shared = BGGeo()

    private struct State {
        var client: LocationClient?
        var configurationProblem: String?
        var overrides = Overrides()
        /// What was set before `ready`.
        var draft = LocationConfiguration()
    }

    /// What tests put in place of the device's own.
    package struct Overrides: Sendable {
        package var dataDirectory: URL?
        package var transport: (any HTTPTransport)?
        package var clock: any ClientClock = SystemClock()
        package var log: CountersignLog?

        package init() {}
    }

    private let state = Lock(State())
    private let authorization = Listeners<AuthorizationEvent>()
    private let http = Listeners<HttpEvent>()
    private let location = Listeners<LocationEvent>()

    package init() {}

    package func override(_ change: (inout Overrides) -> Void) {
        state.withLock { change(&$0.overrides) }
    }

    // MARK: Configuration

    /// Why nothing is recorded, such as a URL that is none; nil if all is well.
    public var configurationProblem: String? { state.withLock { $0.configurationProblem } }

    /// Begins to work. Returns at once; storage opens in the background.
    ///
    /// A pair of tokens that the SDK has refreshed since is never replaced by the older pair that it came from, whatever
    /// `reset` is; a pair that is new to the SDK is used at once.
    ///
    /// - Parameters:
    ///   - reset: True for a configuration that begins with the defaults. False to go on with the settings and tokens of the
    ///     last run: of what `configure` sets, only a new pair of tokens counts then, and all of it at the first start.
    ///   - token: A pair of a demonstration server, with its addresses. It counts whatever `reset` is.
    ///   - configure: Sets what differs from the defaults.
    public func ready(
        reset: Bool = true, transistorAuthorizationToken token: TransistorToken? = nil,
        _ configure: (Config) -> Void
    ) {
        if client != nil {
            setConfig(configure)
            return
        }
        let (overrides, draft) = state.withLock { ($0.overrides, $0.draft) }
        let settings = Settings(draft)
        configure(Config(settings))
        var configuration = settings.configuration
        configuration.instanceName = "background-geolocation"
        configuration.dataDirectory = overrides.dataDirectory
        configuration.log = overrides.log
        configuration.onAuthorization = { [authorization] in authorization.send(AuthorizationEvent($0)) }
        configuration.onHTTP = { [http] in http.send(HttpEvent($0)) }
        configuration.onLocation = { [location] in location.send(LocationEvent($0)) }
        do {
            let client = try LocationClient(
                configuration: configuration, keepsTokens: !reset,
                storedSettings: reset ? .replaced : .kept, transport: overrides.transport,
                clock: overrides.clock)
            state.withLock { state in
                state.client = client
                state.configurationProblem = nil
            }
            if let token { config.edit(token.apply) }
        } catch {
            state.withLock { $0.configurationProblem = "\(error)" }
        }
    }

    /// Changes settings while it works. What `configure` does not set stays as it is, tokens included.
    ///
    /// - Parameter configure: Sets what changes.
    public func setConfig(_ configure: (Config) -> Void) {
        guard client != nil else { return ready(configure) }
        change { configuration in
            let settings = Settings(configuration)
            configure(Config(settings))
            configuration = settings.configuration
        }
    }

    /// The settings in use. What is assigned to them takes effect at once, and is durable where it is a token; before
    /// `ready` it is what `ready` begins with. A value that cannot work changes nothing, and `configurationProblem` says
    /// why.
    ///
    /// ```swift
    /// BGGeo.shared.config.authorization.accessToken = token
    /// ```
    public var config: Config { Config(Settings(of: self)) }

    var configuration: LocationConfiguration { client?.configuration ?? state.withLock { $0.draft } }

    func change(_ change: (inout LocationConfiguration) -> Void) {
        guard let client else { return state.withLock { change(&$0.draft) } }
        do {
            try client.change(change)
            state.withLock { $0.configurationProblem = nil }
        } catch {
            state.withLock { $0.configurationProblem = "\(error)" }
        }
    }

    /// The records that wait.
    public var store: DataStore { DataStore(self) }

    // MARK: Listening

    /// Hears of each answer of `refreshUrl`, and of each that did not come.
    ///
    /// - Parameter callback: Called on the main thread.
    /// - Returns: Ends it when cancelled; may be thrown away.
    @discardableResult
    public func onAuthorization(_ callback: @escaping (AuthorizationEvent) -> Void) -> EventSubscription {
        authorization.add(callback)
    }

    /// Hears of each attempt to upload.
    ///
    /// - Parameter callback: Called on the main thread.
    /// - Returns: Ends it when cancelled; may be thrown away.
    @discardableResult
    public func onHttp(_ callback: @escaping (HttpEvent) -> Void) -> EventSubscription {
        http.add(callback)
    }

    /// Hears of each location that was recorded.
    ///
    /// - Parameter callback: Called on the main thread.
    /// - Returns: Ends it when cancelled; may be thrown away.
    @discardableResult
    public func onLocation(_ callback: @escaping (LocationEvent) -> Void) -> EventSubscription {
        location.add(callback)
    }

    /// Ends all subscriptions.
    public func removeListeners() {
        authorization.removeAll()
        http.removeAll()
        location.removeAll()
    }

    // MARK: Recording

    /// Begins to record what Core Location says, where there is one.
    public func start() { client?.start() }

    /// Ends the recording. What was recorded is sent.
    public func stop() { client?.stop() }

    /// Stores a record.
    ///
    /// - Parameter location: At least `coords` with `latitude` and `longitude`. A missing `timestamp` is the present, a
    ///   missing `uuid` is made. A `timestamp` that is not a date and time with an offset, nor milliseconds since 1970, is sent
    ///   as it is, with a warning in the log.
    /// - Returns: The record's `uuid`; it is on disk.
    /// - Throws: If it is not stored.
    @discardableResult
    public nonisolated(nonsending) func insert(_ location: [String: Any]) async throws(CountersignError)
        -> String
    {
        try await working().insert(json(location))
    }

    /// Uploads everything that waits.
    ///
    /// - Returns: The records that the server has taken.
    /// - Throws: If something stays.
    @discardableResult
    public nonisolated(nonsending) func sync() async throws(CountersignError) -> [[String: Any]] {
        let records = try await working().sync()
        return records.compactMap { $0.any as? [String: Any] }
    }

    /// Records that wait.
    ///
    /// - Returns: How many.
    /// - Throws: If the store cannot be read.
    public func count() async throws(CountersignError) -> Int { try await working().count() }

    /// The records that wait, oldest first.
    ///
    /// - Returns: Each as it will be sent. Records that a template has made an array of are left out.
    /// - Throws: If the store cannot be read.
    public nonisolated(nonsending) func getLocations() async throws(CountersignError) -> [[String: Any]] {
        let records = try await working().records()
        return records.compactMap { $0.any as? [String: Any] }
    }

    /// Removes a record that waits.
    ///
    /// - Parameter uuid: Its id.
    /// - Returns: False if there is none.
    /// - Throws: If the store cannot be written.
    @discardableResult
    public func destroy(_ uuid: String) async throws(CountersignError) -> Bool {
        try await working().remove(uuid: uuid)
    }

    /// Removes all records that wait.
    ///
    /// - Throws: If the store cannot be written.
    public func destroyLocations() async throws(CountersignError) { try await working().removeAll() }

    // MARK: Tokens

    /// True when only new tokens help: the refresh token is dead, and nothing is sent until `setConfig` hands over others.
    public var isReauthenticationRequired: Bool {
        get async { await client?.authorizationState.kind == .reauthenticationRequired }
    }

    /// Forgets the tokens, such as when the person logs out. Records stay.
    public func forgetTokens() async { await client?.forgetTokens() }

    private var client: LocationClient? { state.withLock { $0.client } }

    private func working() throws(CountersignError) -> LocationClient {
        if let client { return client }
        throw CountersignError(.invalidConfiguration, configurationProblem ?? "ready() was not called")
    }

    /// For tests: the end of the process.
    package func close() async {
        let client = state.withLock { state in
            defer { state = State(overrides: state.overrides) }
            return state.client
        }
        await client?.close()
        // What was said last is on its way over the client's queue and the main one; nobody of a later start may hear it.
        await client?.callbacksDelivered()
        await withCheckedContinuation { done in DispatchQueue.main.async { done.resume() } }
        removeListeners()
    }
}
