public import Countersign
public import CountersignCore
public import Foundation

/// Records locations and uploads each of them once, under an access token that refreshes itself.
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
/// All methods may be called from any thread. A record is rendered when it is recorded and stays on disk until a server has
/// taken it; URL, header fields, parameters and token are those of the moment of sending.
public final class LocationClient: Sendable {
    let pipeline: DeliveryPipeline
    private let tokens: AccessTokens
    private let destination: LocationDestination
    private let state: Lock<State>
    private let settingsFile: SettingsFile?
    /// Where the app's closures run, one after the other: one that takes its time holds up nothing but the next.
    private let callbacks = DispatchQueue(label: "countersign.callbacks")

    private struct State {
        var configuration: LocationConfiguration
        /// Counts up with each `stop()`, which ends what was recording before.
        var epoch = 0
        var source: Task<Void, Never>?
        /// Hands tokens over, one configuration after the other.
        var handover: Task<Void, Never>?
    }

    /// Makes a client. The store is opened in the background.
    ///
    /// - Parameters:
    ///   - configuration: How it works.
    ///   - keepsTokens: True to go on with the tokens of the last run even if the configuration has none.
    ///   - transport: The way to the network; nil for `URLSession` on Apple platforms and libcurl on Linux.
    ///   - clock: The time, for tests.
    /// - Throws: `CountersignError` with `invalidConfiguration` if the configuration cannot work.
    public convenience init(
        configuration: LocationConfiguration, keepsTokens: Bool = false,
        transport: (any HTTPTransport)? = nil, clock: any ClientClock = SystemClock()
    ) throws(CountersignError) {
        try self.init(
            configuration: configuration, keepsTokens: keepsTokens, transport: transport, clock: clock,
            random: { Double.random(in: 0...1) })
    }

    /// What becomes of settings that were stored by an earlier run.
    package enum StoredSettings: Sendable {
        /// They are none of this client's, and it stores none.
        case ignored
        /// Those of the configuration are stored in their place.
        case replaced
        /// They are gone on with. Of the configuration only tokens, closures and places count then.
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
        // The pipeline is made after the tokens, which tell it of changes.
        let announce = Lock<(@Sendable (Int) -> Void)?>(nil)
        tokens = AccessTokens(
            configuration: configuration.authorization, isSparse: keepsTokens,
            surroundings: AccessTokens.Surroundings(
                store: folder.makeTokenStore(configuration.tokenStore, log: configuration.log),
                lockFile: folder.directory.appendingPathComponent("tokens.lock"),
                // A refresh does not wait for an upload.
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
                changed: { generation in announce.withLock { $0 }?(generation) },
                adopted: { accessToken, refreshToken in
                    state.withLock { state in
                        state.configuration.authorization.accessToken = accessToken
                        state.configuration.authorization.refreshToken = refreshToken
                    }
                }))
        let observed = Lock<(@Sendable (Result<TransportResponse, HTTPTransportError>) -> Void)?>(nil)
        pipeline = try DeliveryPipeline(
            settings: delivery, storage: delivery.makeStorage(clock: clock), destination: destination,
            credentials: tokens,
            transport: ObservedTransport(transport: transport ?? makeDefaultTransport()) { result in
                observed.withLock { $0 }?(result)
            }, clock: clock, random: random)
        announce.withLock { announce in
            announce = { [weak pipeline = pipeline] generation in
                pipeline?.post { [.changed(.anonymous, generation: generation)] }
            }
        }
        observed.withLock { observed in
            observed = { [weak self] result in self?.exchanged(result) }
        }
        post(configuration)
        configuration.authorization.warnAboutPayload(log: configuration.log)
        save(configuration)
        Task { [tokens] in await tokens.prepare() }
    }

    private func save(_ configuration: LocationConfiguration) {
        guard let settingsFile else { return }
        pipeline.perform { settingsFile.save(configuration) }
    }

    deinit {
        state.withLock { $0.source }?.cancel()
        Task { [tokens] in await tokens.close() }
    }

    /// Ends all work. A refresh that is under way is waited for, since its answer holds the next token.
    public func close() async {
        stop()
        await pipeline.close()
        await tokens.close()
    }

    // MARK: Settings

    /// How the client works now.
    public var configuration: LocationConfiguration { state.withLock { $0.configuration } }

    /// Works in another way from now on. Limits and directories stay as they were at the start.
    ///
    /// Tokens that the new configuration leaves out stay; a pair that was handed over before changes nothing.
    ///
    /// - Parameter change: Changes the configuration.
    /// - Throws: `CountersignError` with `invalidConfiguration`: then nothing changes.
    public func update(_ change: (inout LocationConfiguration) -> Void) async throws(CountersignError) {
        try self.change(change)
        await handover()
    }

    /// As `update`, without waiting until new tokens are on disk. Requests wait for that.
    package func change(_ change: (inout LocationConfiguration) -> Void) throws(CountersignError) {
        var configuration = configuration
        change(&configuration)
        try configuration.validate()
        let authorization = configuration.authorization
        if authorization.refreshPayload != self.configuration.authorization.refreshPayload {
            authorization.warnAboutPayload(log: configuration.log)
        }
        apply(configuration)
        state.withLock { state in
            state.handover = Task { [tokens, previous = state.handover] in
                await previous?.value
                await tokens.configure(authorization)
            }
        }
    }

    private func handover() async {
        await state.withLock { $0.handover }?.value
    }

    private func apply(_ configuration: LocationConfiguration) {
        state.withLock { $0.configuration = configuration }
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

    /// Whether requests can be authorized, and what has to happen if not.
    public var authorizationState: AuthorizationState {
        get async {
            await handover()
            await tokens.prepare()
            return await tokens.state
        }
    }

    /// The access token for a request of the app's own, so that the app and the SDK never refresh at the same time.
    ///
    /// - Parameter rejected: The token that a server has refused; nil if none was.
    /// - Returns: A token that was not refused; refreshed if need be. It is a credential: never log it.
    /// - Throws: `CountersignError` with `notAuthorized`. `authorizationState` says whether to try again.
    public func accessToken(replacing rejected: String? = nil) async throws(CountersignError) -> String {
        await handover()
        await tokens.prepare()
        var generation: Int?
        if let rejected { generation = await tokens.generation(of: rejected) }
        switch await tokens.authorize(rejected: generation) {
        case .ready(let credential):
            guard let token = credential.token else {
                throw CountersignError(.notAuthorized, "the app has handed over no access token")
            }
            return token.rawValue
        case .pending: throw CountersignError(.notAuthorized, "the access token is being refreshed")
        case .doubtful(_, let problem), .unavailable(let problem, _):
            throw CountersignError(.notAuthorized, "\(problem.code): \(problem.reason)")
        }
    }

    /// Forgets the tokens, such as when the person logs out. Records stay.
    public func forgetTokens() async {
        await handover()
        state.withLock { state in
            state.configuration.authorization.accessToken = nil
            state.configuration.authorization.refreshToken = nil
        }
        await tokens.forget()
    }

    // MARK: Records

    /// Stores a location; when it returns, the record is on disk.
    ///
    /// - Parameter location: Where and when.
    /// - Returns: The record's id.
    /// - Throws: `CountersignError`: `invalidLocation` for what cannot be a location, others if it is not stored.
    @discardableResult
    public func record(_ location: Location) async throws(CountersignError) -> String {
        try await insert(location.record)
    }

    /// Stores a record in the default shape; when it returns, the record is on disk.
    ///
    /// - Parameter record: At least `coords` with `latitude` and `longitude`. A missing `timestamp` is the present, a
    ///   missing `uuid` is made. Servers drop a second record with the same `uuid`.
    /// - Returns: The record's `uuid`.
    /// - Throws: `CountersignError`: `invalidLocation` for what cannot be a location, others if it is not stored.
    @discardableResult
    public func insert(_ record: [String: JSONValue]) async throws(CountersignError) -> String {
        let result: Result<String, CountersignError> = await withCheckedContinuation { continuation in
            do throws(CountersignError) {
                try insert(record) { continuation.resume(returning: $0) }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        return try result.get()
    }

    /// As `insert`, in the order of the calls. `stored` is called once, on any thread, unless this throws.
    package func insert(
        _ record: [String: JSONValue],
        stored: @escaping @Sendable (Result<String, CountersignError>) -> Void
    ) throws(CountersignError) {
        let configuration = configuration
        let made = try LocationRecord(record, settings: configuration.persistence, now: pipeline.clock.now)
        guard configuration.persistence.maxRecordsToPersist != 0 else {
            throw CountersignError(.notPersisted, "maxRecordsToPersist is 0")
        }
        var body = JSONValue.object(made.object)
        let template = configuration.persistence.locationTemplate
        if !template.isEmpty {
            if let rendered = LocationTemplate(text: template).render(made.object) {
                body = rendered
            } else {
                configuration.log?(
                    .warning, "locationTemplate error: not a JSON object or array, the default is used", [:])
            }
        }
        pipeline.store(LocationContent(value: body), messageID: made.uuid) { [weak self] result in
            if let self, case .success = result { took(made.object, configuration) }
            stored(result.map { _ in made.uuid })
        }
    }

    /// What follows when a record is on disk.
    private func took(_ record: [String: JSONValue], _ configuration: LocationConfiguration) {
        if configuration.http.autoSync, record["event"] == "motionchange" {
            pipeline.sendSoon()
        }
        if let handler = configuration.onLocation {
            callbacks.async { handler(record) }
        }
    }

    /// Records each location of a sequence until it ends, the task is cancelled, or `stop()` is called.
    ///
    /// - Parameter locations: Such as those of a receiver, or of `locations(inGPX:)`.
    /// - Returns: How many were recorded. One that cannot be stored is passed over and logged.
    /// - Throws: What the sequence throws.
    @discardableResult
    public func record<Locations: AsyncSequence & Sendable>(contentsOf locations: Locations) async throws
        -> Int
    where Locations.Element == Location {
        let (epoch, log) = state.withLock { ($0.epoch, $0.configuration.log) }
        var count = 0
        for try await location in locations {
            guard !Task.isCancelled, state.withLock({ $0.epoch }) == epoch else { break }
            do {
                try await record(location)
                count += 1
            } catch {
                log?(.warning, "location was not recorded", ["error": "\(error)"])
            }
        }
        return count
    }

    /// The track points of a GPX file, version 1.0 or 1.1.
    ///
    /// - Parameter data: The file. Of one that is cut short, the points before the cut.
    /// - Returns: The points in order. One without a time has the present one.
    public static func locations(inGPX data: Data) -> AsyncStream<Location> {
        let now = Date()
        let locations = GPXReader.read(data).points.map { point in
            var location = Location(
                latitude: point.latitude, longitude: point.longitude,
                timestamp: point.milliseconds.map {
                    Milliseconds($0).date
                } ?? now)
            location.altitude = point.elevation
            return location
        }
        return AsyncStream { continuation in
            for location in locations { continuation.yield(location) }
            continuation.finish()
        }
    }

    /// Begins to record: on Apple platforms what Core Location says, if the person allows it. It ends with `stop()`, or when
    /// nobody has the client any longer.
    public func start() {
        #if canImport(CoreLocation)
            listen { CoreLocationSource.signals($0) }
        #endif
    }

    /// Listens to a source, unless there is one. Between two signals nobody keeps the client.
    func listen(
        to signals: @escaping @Sendable (LocationConfiguration.Positioning) -> AsyncStream<PositioningSignal>
    ) {
        state.withLock { state in
            guard state.source == nil else { return }
            state.source = Task { [weak self, settings = state.configuration.positioning] in
                for await signal in signals(settings) {
                    guard !Task.isCancelled, let self else { return }
                    await take(signal)
                }
            }
        }
    }

    private func take(_ signal: PositioningSignal) async {
        let configuration = configuration
        switch signal {
        case .location(let location):
            do {
                try await record(location)
            } catch {
                configuration.log?(.warning, "location was not recorded", ["error": "\(error)"])
            }
        case .status(let status):
            let isGood = status.errorCode == nil && [.always, .whenInUse].contains(status.authorization)
            configuration.log?(
                isGood ? .info : .warning, "positioning",
                [
                    "authorization": status.authorization.rawValue,
                    "error": status.errorCode.map(String.init) ?? "none",
                ])
            if let handler = configuration.onPositioning { callbacks.async { handler(status) } }
        }
    }

    /// Ends all recording that is under way. What was recorded is sent.
    public func stop() {
        state.withLock { state in
            state.epoch += 1
            state.source?.cancel()
            state.source = nil
        }
    }

    /// Records that wait.
    ///
    /// - Returns: How many.
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be read now.
    public func count() async throws(CountersignError) -> Int {
        try await pipeline.waitingCount()
    }

    /// The records that wait, the oldest first.
    ///
    /// - Returns: Each as it will be sent.
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be read now.
    public func records() async throws(CountersignError) -> [JSONValue] {
        try await pipeline.waitingBodies().compactMap(JSONDocument.value)
    }

    /// Removes a record that waits.
    ///
    /// - Parameter uuid: Its id.
    /// - Returns: False if there is none.
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be written now.
    @discardableResult
    public func remove(uuid: String) async throws(CountersignError) -> Bool {
        try await pipeline.removeWaiting(messageID: uuid)
    }

    /// Removes all records. Tokens stay.
    ///
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be written now.
    public func removeAll() async throws(CountersignError) {
        try await pipeline.removeAllWaiting()
    }

    /// Sends everything that waits.
    ///
    /// - Returns: The records that the server has taken.
    /// - Throws: `CountersignError`: what was not sent stays, or is set aside if the server will never take it. What was sent
    ///   before is gone all the same.
    @discardableResult
    public func sync() async throws(CountersignError) -> [JSONValue] {
        guard destination.settings.http.endpoint != nil else {
            throw CountersignError(.invalidURL, "http.url must be an http or https URL with a host")
        }
        await handover()
        let collector = destination.beginCollecting()
        let result = await pipeline.flush()
        let delivered = destination.endCollecting(collector)
        guard result.isComplete, !result.batches.contains(where: { $0.outcome == .quarantined }) else {
            throw Self.error(of: result)
        }
        return delivered.compactMap { JSONDocument.value($0.body) }
    }

    private static func error(of result: FlushResult) -> CountersignError {
        let detail = "\(result.queued) records wait"
        if result.ending == .otherProcessIsSending { return CountersignError(.syncInProgress, detail) }
        guard let last = result.batches.last else { return CountersignError(.response, detail) }
        let isNetwork = [
            HTTPTransportError.Code.cannotConnect, .connectionLost, .timedOut, .tls, .notPermitted, .other,
        ].contains { $0.rawValue == last.code }
        if isNetwork { return CountersignError(.networkConnection, "\(last.code); \(detail)") }
        if last.code.hasPrefix("http_3") { return CountersignError(.redirect, "\(last.code); \(detail)") }
        return CountersignError(
            last.outcome == .tokenProblem ? .notAuthorized : .response, "\(last.code); \(detail)")
    }

    // MARK: Quarantine

    /// As `CountersignClient.quarantinedEvents()`.
    ///
    /// - Returns: The records that the server will never take as they are.
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be read now.
    public func quarantinedRecords() async throws(CountersignError) -> [QuarantinedEvent] {
        try await pipeline.quarantined()
    }

    /// As `CountersignClient.requeueQuarantinedEvents()`.
    ///
    /// - Returns: How many.
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be written now.
    @discardableResult
    public func requeueQuarantinedRecords() async throws(CountersignError) -> Int {
        try await pipeline.requeueQuarantined()
    }

    /// As `CountersignClient.deleteQuarantinedEvents()`.
    ///
    /// - Returns: How many.
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be written now.
    @discardableResult
    public func deleteQuarantinedRecords() async throws(CountersignError) -> Int {
        try await pipeline.deleteQuarantined()
    }

    /// Where every record is, and what the SDK is waiting for.
    ///
    /// - Returns: The state at this moment.
    public func snapshot() async -> CountersignSnapshot { await pipeline.snapshot() }

    // MARK: Answers

    private func exchanged(_ result: Result<TransportResponse, HTTPTransportError>) {
        switch result {
        case .failure(let error):
            tell(UploadEvent(isSuccess: false, status: 0, responseText: "", error: "\(error)"))
        case .success(let response):
            let isSuccess = configuration.http.hasTaken(response)
            let isPage = !isSuccess && (200..<300).contains(response.status)
            tell(
                UploadEvent(
                    isSuccess: isSuccess, status: response.status,
                    responseText: String(decoding: response.body, as: UTF8.self),
                    error: isSuccess ? nil : isPage ? "page" : "http_\(response.status)"))
            if isPage { return }
            for command in ServerCommand.all(in: response) { perform(command) }
        }
    }

    private func tell(_ event: UploadEvent) {
        guard let handler = configuration.onHTTP else { return }
        callbacks.async { handler(event) }
    }

    /// Returns when the app's closures have been called for all that has happened.
    package func callbacksDelivered() async {
        await withCheckedContinuation { continuation in callbacks.async { continuation.resume() } }
    }

    private func perform(_ command: ServerCommand) {
        var configuration = configuration
        guard configuration.allowedCommands.contains(command.name) else {
            configuration.log?(
                .info, "a server's command was ignored", ["command": String(command.name.prefix(64))])
            return
        }
        switch command.name {
        case "start": start()
        case "stop": stop()
        case "setConfig":
            guard let http = ServerCommand.apply(command.argument, to: configuration.http) else {
                configuration.log?(.warning, "a server's setConfig was refused", [:])
                return
            }
            configuration.http = http
            apply(configuration)
        default: break
        }
    }
}

extension AuthorizationConfiguration {
    fileprivate func warnAboutPayload(log: CountersignLog?) {
        func names(_ value: JSONValue) -> Bool {
            switch value {
            case .string(let text): text.contains("{refreshToken}")
            case .array(let elements): elements.contains(where: names)
            case .object(let members): members.values.contains(where: names)
            default: false
            }
        }
        guard let refreshPayload, !refreshPayload.isEmpty, !refreshPayload.values.contains(where: names)
        else {
            return
        }
        log?(
            .warning,
            "no field of refreshPayload has {refreshToken}: the server will not know what to refresh", [:])
    }
}

extension LocationConfiguration {
    /// All apps have the same key: what is uploaded, and where, may change.
    fileprivate var folder: InstanceFolder {
        InstanceFolder(name: instanceName, dataDirectory: dataDirectory, key: "locations")
    }

    fileprivate var destinationSettings: LocationDestination.Settings {
        LocationDestination.Settings(http: http, refreshStatuses: authorization.refreshStatuses)
    }

    fileprivate func validate() throws(CountersignError) {
        func require(_ condition: Bool, _ detail: String) throws(CountersignError) {
            guard condition else { throw CountersignError(.invalidConfiguration, detail) }
        }
        try require(
            http.url.isEmpty || http.endpoint != nil, "http.url must be an http or https URL with a host")
        try require(
            ["POST", "PUT", "PATCH", "OPTIONS"].contains(http.method.uppercased()),
            "http.method must be POST, PUT, PATCH or OPTIONS")
        try require(http.timeout > 0, "http.timeout must be above 0")
        for headers in [http.headers, authorization.refreshHeaders ?? [:]] {
            for (name, value) in headers {
                try require(
                    HeaderFields.isValid(name: name, value: value),
                    "\(name) cannot be a header field (RFC 9110)")
            }
        }
        if let text = authorization.accessToken, !text.isEmpty {
            try require(
                SignedToken.accessToken(text) != nil, "accessToken must be printable ASCII of up to 16 KiB")
            try require(
                SignedToken.accessToken(text, strategy: authorization.strategy) != nil,
                AuthorizationStrategy.malformedToken)
        }
    }
}
