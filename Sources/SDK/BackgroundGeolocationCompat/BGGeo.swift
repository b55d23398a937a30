internal import CountersignCore
public import CountersignDelivery
internal import CountersignLocations
package import CountersignTransport
package import Foundation

/// The part of Transistorsoft's background geolocation API that uploads locations, over a `LocationClient`.
///
/// Code written for that API needs only another import. Listeners are called on the main thread, in order, until they
/// are cancelled or `removeListeners()` is called. Releasing a subscription does not end it.
public final class BGGeo: MutableSettings, Sendable {
    /// The shared instance.
    public static let shared = BGGeo()

    private struct State {
        var client: LocationClient?
        var configurationProblem: String?
        var overrides = Overrides()
        /// The settings before `ready`.
        var draft = LocationConfiguration()
    }

    /// Replacements for tests.
    package struct Overrides: Sendable {
        package var dataDirectory: URL?
        package var transport: (any HTTPTransport)?
        package var clock: any ClientClock = SystemClock()
        package var log: CountersignLog? = .standard(.warning)

        package init() {}
    }

    private let state = Lock(State())
    private let authorization = Listeners<AuthorizationEvent>()
    private let http = Listeners<HttpEvent>()
    private let location = Listeners<LocationEvent>()

    package init() {}

    private var overrides: Overrides { state.withLock { $0.overrides } }

    package func override(_ change: (inout Overrides) -> Void) {
        state.withLock { change(&$0.overrides) }
    }

    // MARK: Configuration

    /// The reason why the last configuration was rejected, such as an invalid URL; nil if it is valid.
    public var configurationProblem: String? { state.withLock { $0.configurationProblem } }

    /// Starts the SDK, or only changes settings if the SDK runs. Returns at once; storage opens in the background.
    ///
    /// Never replaces a refreshed pair of tokens by the older pair that it was refreshed from, regardless of `reset`.
    /// A pair that is new to the SDK is used at once.
    ///
    /// - Parameters:
    ///   - reset: True to start from `config`, at first the defaults. False to keep the last run's settings and tokens.
    ///     `configure` then applies in full at the first start only. Later starts take only new tokens from it.
    ///   - token: A pair of tokens with the URLs of its server. Applies regardless of `reset`.
    ///   - configure: Changes these settings.
    public func ready(
        reset: Bool = true, transistorAuthorizationToken token: TransistorToken? = nil,
        _ configure: (Config) -> Void
    ) {
        if client != nil || !start(reset: reset, configure) { setConfig(configure) }
        if let token, client != nil { config.edit(token.apply) }
    }

    /// Starts the SDK. Returns false if another thread has started it already.
    private func start(reset: Bool, _ configure: (Config) -> Void) -> Bool {
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
        var isFirst = true
        attempt { () throws(CountersignError) in
            try state.withLock { state throws(CountersignError) in
                isFirst = state.client == nil
                guard isFirst else { return }
                state.client = try LocationClient(
                    configuration: configuration, keepsTokens: !reset,
                    storedSettings: reset ? .replaced : .kept, transport: overrides.transport,
                    clock: overrides.clock)
            }
        }
        return isFirst
    }

    /// Changes settings; before `ready`, calls `ready`. Settings that `configure` does not set stay, including tokens.
    ///
    /// - Parameter configure: Changes the settings.
    public func setConfig(_ configure: (Config) -> Void) {
        guard client != nil else { return ready(configure) }
        change { configuration in
            let settings = Settings(configuration)
            configure(Config(settings))
            configuration = settings.configuration
        }
    }

    /// The current settings, or the initial settings of `ready`. An assignment takes effect at once, but uploads may
    /// briefly use an earlier token. After `ready`, an invalid value is logged and sets `configurationProblem`.
    ///
    /// ```swift
    /// BGGeo.shared.config.authorization.accessToken = token
    /// ```
    public var config: Config { Config(Settings(of: self)) }

    var configuration: LocationConfiguration { client?.configuration ?? state.withLock { $0.draft } }

    func change(_ change: (inout LocationConfiguration) -> Void) {
        let client = state.withLock { state in
            if state.client == nil { change(&state.draft) }
            return state.client
        }
        guard let client else { return }
        attempt { () throws(CountersignError) in try client.change(change) }
    }

    /// Runs `work`. Stores and logs the error if the settings are invalid, and otherwise clears an earlier error.
    private func attempt(_ work: () throws(CountersignError) -> Void) {
        do throws(CountersignError) {
            try work()
            state.withLock { $0.configurationProblem = nil }
        } catch {
            state.withLock { $0.configurationProblem = "\(error)" }
            overrides.log?(.warning, "the settings are invalid", ["error": "\(error)"])
        }
    }

    /// The waiting records.
    public var store: DataStore { DataStore(self) }

    // MARK: Listening

    /// Notifies of the result of each request to `refreshUrl`.
    ///
    /// - Parameter callback: Called on the main thread.
    /// - Returns: The subscription, which ends when cancelled, not when released.
    @discardableResult
    public func onAuthorization(_ callback: @escaping (AuthorizationEvent) -> Void) -> EventSubscription {
        authorization.add(callback)
    }

    /// Notifies of the result of each upload.
    ///
    /// - Parameter callback: Called on the main thread.
    /// - Returns: The subscription, which ends when cancelled, not when released.
    @discardableResult
    public func onHttp(_ callback: @escaping (HttpEvent) -> Void) -> EventSubscription {
        http.add(callback)
    }

    /// Notifies of each recorded location.
    ///
    /// - Parameter callback: Called on the main thread.
    /// - Returns: The subscription, which ends when cancelled, not when released.
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

    /// Starts recording from Core Location, if available. Does nothing before `ready`.
    public func start() { client?.start() }

    /// Stops recording. Locations recorded before are still sent.
    public func stop() { client?.stop() }

    /// Stores a record.
    ///
    /// - Parameter location: At least `coords` with `latitude` and `longitude`. A missing `timestamp` becomes
    ///   the current time, a missing `uuid` is generated. A `timestamp` other than a date and time with an
    ///   offset or milliseconds since 1970 is sent unchanged, with a warning in the log.
    /// - Returns: The `uuid` of the record, which is durable.
    /// - Throws: If the record is not stored.
    @discardableResult
    public nonisolated(nonsending) func insert(_ location: [String: Any]) async throws(CountersignError)
        -> String
    {
        try await working().insert(json(location))
    }

    /// Uploads all waiting records.
    ///
    /// - Returns: The records that the server accepted.
    /// - Throws: If `ready` was not called, there is no URL, or not all records were accepted.
    @discardableResult
    public nonisolated(nonsending) func sync() async throws(CountersignError) -> [[String: Any]] {
        let records = try await working().sync()
        return records.compactMap { $0.any as? [String: Any] }
    }

    /// Counts the waiting records.
    ///
    /// - Returns: The number of records.
    /// - Throws: If `ready` was not called or the store cannot be read.
    public func count() async throws(CountersignError) -> Int { try await working().count() }

    /// The waiting records, oldest first.
    ///
    /// - Returns: The records as they will be sent, without records that a template renders as an array.
    /// - Throws: If `ready` was not called or the store cannot be read.
    public nonisolated(nonsending) func getLocations() async throws(CountersignError) -> [[String: Any]] {
        let records = try await working().records()
        return records.compactMap { $0.any as? [String: Any] }
    }

    /// Removes a waiting record.
    ///
    /// - Parameter uuid: The record's `uuid`.
    /// - Returns: False if the record is not found.
    /// - Throws: If `ready` was not called or the store cannot be written.
    @discardableResult
    public func destroy(_ uuid: String) async throws(CountersignError) -> Bool {
        try await working().remove(uuid: uuid)
    }

    /// Removes all records, also those in quarantine.
    ///
    /// - Throws: If `ready` was not called or the store cannot be written.
    public func destroyLocations() async throws(CountersignError) { try await working().removeAll() }

    // MARK: Tokens

    /// True if the refresh token is invalid. Once the access token is rejected, requests wait for new tokens.
    public var isReauthenticationRequired: Bool {
        get async { await client?.authorizationState.kind == .reauthenticationRequired }
    }

    /// Deletes the tokens, such as when the user logs out. Records stay.
    public func forgetTokens() async { await client?.forgetTokens() }

    private var client: LocationClient? { state.withLock { $0.client } }

    private func working() throws(CountersignError) -> LocationClient {
        if let client { return client }
        throw CountersignError(.invalidConfiguration, configurationProblem ?? "ready() was not called")
    }

    package func close() async {
        let client = state.withLock { state in
            defer { state = State(overrides: state.overrides) }
            return state.client
        }
        await client?.close()
        // Wait for pending callbacks, so that listeners of a later start do not receive them.
        await client?.callbacksDelivered()
        await withCheckedContinuation { done in DispatchQueue.main.async { done.resume() } }
        removeListeners()
    }
}
