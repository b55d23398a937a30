public import CountersignCore
public import CountersignTransport
public import Foundation

/// Records customers and events for a project of Bloomreach Engagement, and fetches content from it.
///
/// ```swift
/// var configuration = BloomreachConfiguration(
///     project: try BloomreachProject(token: "shop", apiKey: "YOUR API KEY"))
/// configuration.advancedAuthEnabled = true
/// configuration.authorizationProvider = .suspending(provider)
/// let client = try BloomreachClient(configuration: configuration)
/// client.identifyCustomer(["registered": "ada@example.com"])
/// client.trackEvent("purchase", properties: ["total": 42.5])
/// let messages = try await client.fetchAppInbox()
/// ```
///
/// Tracked data waits in the client's own durable queue. Each request has one event, with the customer's IDs at the
/// time of recording. Queries are sent at once. All methods may be called from any thread. Methods that are
/// not `async` return at once.
public final class BloomreachClient: Sendable {
    struct Setup: Sendable {
        var project: BloomreachProject
        var mapping: [BloomreachEventKind: [BloomreachProject]]
        var defaultProperties: JSONObject
    }

    package let configuration: BloomreachConfiguration
    let pipeline: DeliveryPipeline
    private let projectKeys: ProjectCredentialSource
    let customer: CustomerRecord
    let device: BloomreachDeviceRecord
    let inbox: AppInboxCache
    let customerTokens: CustomerTokenCoordinator
    let userTokens: CustomerTokenCoordinator
    let queries: any HTTPTransport
    let headers: [(name: String, value: String)]
    private let setup: Lock<Setup>
    private let facts: JSONObject
    private let discovery: AuthorizationProviderDiscovery

    var log: CountersignLog? { configuration.log }
    var storage: Storage { pipeline.storage }
    var project: BloomreachProject { setup.withLock { $0.project } }

    var present: (project: BloomreachProject, customer: BloomreachCustomer, generation: Int) {
        setup.withLock { setup in
            let (customer, generation) = customer.current
            return (setup.project, customer, generation)
        }
    }

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - configuration: The client's configuration.
    ///   - transport: The HTTP transport; nil for two of the platform's, one for tracking and one for queries.
    ///   - clock: The clock, replaceable in tests.
    /// - Throws: `CountersignError` with `invalidConfiguration` if the configuration is invalid, such as
    ///   `advancedAuthEnabled` without a provider, which is also logged. `notStored` if the file with the customer's
    ///   IDs cannot be read now; retry later.
    public init(
        configuration: BloomreachConfiguration, transport: (any HTTPTransport)? = nil,
        clock: any ClientClock = SystemClock()
    ) throws(CountersignError) {
        guard configuration.authorizationProviderTimeout > 0 else {
            throw CountersignError(.invalidConfiguration, "authorizationProviderTimeout must be above 0")
        }
        discovery = AuthorizationProviderDiscovery(wording: configuration.wording, log: configuration.log)
        var provider: CustomerTokenProvider?
        if configuration.advancedAuthEnabled {
            provider = try discovery.find(configuration.authorizationProvider)
        }
        var userProvider: CustomerTokenProvider?
        if let given = configuration.userTokenProvider { userProvider = try discovery.find(given) }
        self.configuration = configuration
        facts = configuration.context.properties
        let ownHeaders: [(name: String, value: String)] = [
            ("Content-Type", "application/json"), ("Accept", "application/json"),
            ("User-Agent", configuration.context.userAgent),
        ]
        headers = ownHeaders + configuration.headers.map { ($0.key, $0.value) }
        setup = Lock(
            Setup(
                project: configuration.project, mapping: configuration.projectMapping,
                defaultProperties: configuration.defaultProperties))
        let folder = configuration.folder
        try folder.validate()
        let settings = configuration.deliverySettings
        // Read before any work starts, so that a failed client leaves nothing running on its files.
        let file = CustomerRecord.file(settings.directory)
        let stored = try CustomerRecord.read(file, directory: settings.directory, log: configuration.log)
        let former = CustomerRecord.formerPath(settings.directory)
        let storage = settings.makeStorage(clock: clock)
        projectKeys = ProjectCredentialSource(
            stored: StoredTokens(
                store: folder.makeTokenStore(nil, log: configuration.log), storage: storage,
                log: configuration.log), clock: clock)
        pipeline = try DeliveryPipeline(
            settings: settings, storage: storage,
            destination: BloomreachDestination(headers: ownHeaders, timeout: configuration.requestTimeout),
            credentials: projectKeys, owner: nil, identity: file,
            transport: transport, clock: clock, random: { Double.random(in: 0...1) })
        // Separate connections, so that a slow query does not delay events.
        queries = transport ?? makeDefaultTransport()
        customer = CustomerRecord(stored, recorder: pipeline.recorder)
        if FileManager.default.fileExists(atPath: former) {
            // Delete the old file once the customer is in the new one.
            if file.content == .missing { customer.save() } else { unlink(former) }
        }
        device = BloomreachDeviceRecord(
            directory: settings.directory, recorder: pipeline.recorder, storage: storage,
            log: configuration.log)
        inbox = AppInboxCache(directory: settings.directory, log: configuration.log)
        customerTokens = CustomerTokenCoordinator(
            provider: provider, timeout: configuration.authorizationProviderTimeout, clock: clock)
        userTokens = CustomerTokenCoordinator(
            provider: userProvider, timeout: configuration.authorizationProviderTimeout, clock: clock)
        useKeys()
        configuration.logSettingsWithoutEffect()
        pipeline.onSessionEvent { [weak self] event in self?.sessionEvent(event) }
    }

    private func useKeys() {
        let setup = setup.withLock { $0 }
        for project in [setup.project] + setup.mapping.values.joined() {
            guard let key = SignedToken.accessToken(project.apiKey) else { continue }
            pipeline.engine.post { [projectKeys] in await projectKeys.take(key, for: UserKey(project.token)) }
        }
    }

    // MARK: The customer

    /// The customer's IDs, including `cookie`.
    public var customerIDs: [String: String] { customer.current.customer.identifiers }

    /// Adds IDs to the customer, replacing earlier ones of the same name, and records an update with them.
    ///
    /// Data recorded earlier keeps its IDs. If the IDs change, the cached App Inbox is deleted and the token providers
    /// are notified.
    ///
    /// - Parameters:
    ///   - ids: IDs such as `registered`. Empty values are left out. `cookie` is reserved, and left out with a
    ///     warning.
    ///   - properties: The customer's properties.
    ///   - timestamp: Time of the update, in seconds since 1970; nil for now.
    public func identifyCustomer(
        _ ids: [String: String], properties: JSONObject = [:], timestamp: TimeInterval? = nil
    ) {
        if ids[BloomreachCustomer.cookieName] != nil {
            log?(.warning, "You should never set cookie ID directly on a customer. Ignoring.", [:])
        }
        let kept = ids.filter {
            $0.key != BloomreachCustomer.cookieName && !$0.key.isEmpty && !$0.value.isEmpty
        }
        // In one step: another thread may change the project and customer meanwhile.
        let (moment, isAnother) = setup.withLock { setup in
            let (customer, isAnother) = customer.change { $0.ids.merge(kept) { _, new in new } }
            return ((setup, customer), isAnother)
        }
        if isAnother { customerChanged() }
        trackCustomer(moment, properties: properties, timestamp: timestamp)
    }

    /// Replaces the customer by an anonymous one with a new cookie.
    ///
    /// Deletes the cached App Inbox and notifies the token providers. A provider found by its class name is created
    /// again, so that none of its cached data remains. Data recorded earlier keeps its IDs.
    ///
    /// - Parameters:
    ///   - project: The new project; nil for no change.
    ///   - mapping: The new mapping; nil for no change.
    public func anonymize(
        project: BloomreachProject? = nil, mapping: [BloomreachEventKind: [BloomreachProject]]? = nil
    ) {
        // The session and the push token belong to the earlier customer and project.
        let hasSession = device.current.session != nil
        if hasSession { endSession() }
        let pushToken = device.current.pushToken?.token
        if let pushToken { recordPushToken(pushToken, isValid: false, "Invalidated") }
        // In one step, so that no event combines the new project with the earlier customer.
        setup.withLock { setup in
            if let project { setup.project = project }
            if let mapping { setup.mapping = mapping }
            _ = customer.change { $0 = .anonymous() }
        }
        if project != nil || mapping != nil { useKeys() }
        if hasSession { startSession() } else { pipeline.startSession() }
        if let pushToken { recordPushToken(pushToken, isValid: true, "Permission granted") }
        // `find` returns an instance unchanged. It logs its error. Without a provider, requests throw `noProvider`.
        if configuration.advancedAuthEnabled {
            customerTokens.setProvider(try? discovery.find(configuration.authorizationProvider))
        }
        if let given = configuration.userTokenProvider { userTokens.setProvider(try? discovery.find(given)) }
        customerChanged()
    }

    private func customerChanged() {
        storage.submit { [inbox] _ in inbox.clear() }
        notifyProviders(of: customerIDs)
    }

    // MARK: Tracking

    /// Records properties of the customer.
    ///
    /// - Parameters:
    ///   - properties: The properties. They replace earlier ones of the same name.
    ///   - timestamp: Time of the update, in seconds since 1970; nil for now.
    public func trackCustomer(properties: JSONObject, timestamp: TimeInterval? = nil) {
        trackCustomer(nil, properties: properties, timestamp: timestamp)
    }

    private func trackCustomer(
        _ moment: (Setup, BloomreachCustomer)?, properties: JSONObject, timestamp: TimeInterval?
    ) {
        let properties =
            configuration.allowDefaultCustomerProperties ? withDefaults(properties) : properties
        record(
            .trackCustomer, .trackCustomer,
            ["properties": .object(properties), "timestamp": time(timestamp)],
            at: moment)
    }

    /// Records an event of the customer.
    ///
    /// - Parameters:
    ///   - type: The event type, such as `purchase`; not empty.
    ///   - properties: The event's properties.
    ///   - timestamp: Time of the event, in seconds since 1970; nil for now.
    ///   - kind: The key that selects further projects from the mapping.
    public func trackEvent(
        _ type: String, properties: JSONObject = [:], timestamp: TimeInterval? = nil,
        kind: BloomreachEventKind = .trackEvent
    ) {
        guard !type.isEmpty else {
            log?(.warning, "an event without a type is not recorded", [:])
            return
        }
        trackPlainEvent(type, properties: withDefaults(properties), timestamp: timestamp, kind: kind)
    }

    /// Records an event without the default properties.
    func trackPlainEvent(
        _ type: String, properties: JSONObject, timestamp: TimeInterval? = nil,
        kind: BloomreachEventKind
    ) {
        record(
            .trackEvent, kind,
            [
                "event_type": .string(type), "properties": .object(properties), "timestamp": time(timestamp),
            ])
    }

    /// Records that the app was opened through a campaign's link.
    ///
    /// - Parameters:
    ///   - url: The link. A link without `xnpe_cmp` belongs to no campaign and is not recorded.
    ///   - timestamp: Time of the click, in seconds since 1970; nil for now.
    public func trackCampaignClick(_ url: URL, timestamp: TimeInterval? = nil) {
        let items = URLComponents(url: url, resolvingAgainstBaseURL: true)?.queryItems ?? []
        guard items.contains(where: { $0.name == "xnpe_cmp" && $0.value?.isEmpty == false }) else {
            log?(.info, "a link without xnpe_cmp belongs to no campaign", [:])
            return
        }
        record(
            .trackCampaignClick, .campaignClick,
            [
                "event_type": "campaign_click", "url": .string(url.absoluteString),
                "properties": ["platform": .string(configuration.platform)], "timestamp": time(timestamp),
            ])
    }

    /// The default properties, initially as in the configuration.
    public var defaultProperties: JSONObject {
        get { setup.withLock { $0.defaultProperties } }
        set { setup.withLock { $0.defaultProperties = newValue } }
    }

    private func withDefaults(_ properties: JSONObject) -> JSONObject {
        defaultProperties.merging(properties) { _, given in given }
    }

    private func time(_ timestamp: TimeInterval?) -> JSONValue {
        .number(timestamp ?? pipeline.clock.now.timeIntervalSince1970)
    }

    private func record(
        _ endpoint: BloomreachEndpoint, _ kind: BloomreachEventKind, _ members: JSONObject,
        at moment: (Setup, BloomreachCustomer)? = nil
    ) {
        let now = pipeline.clock.now.timeIntervalSince1970
        device.change { $0.recorded(now: now) }
        let present = setup.withLock { ($0, self.customer.current.customer) }
        let (setup, customer) = moment ?? present
        var body = members
        body["customer_ids"] = customer.json
        // Add no facts to a customer update, because its properties become properties of the customer.
        if endpoint != .trackCustomer {
            let given = members["properties"]?.object ?? [:]
            body["properties"] = .object(facts.merging(given) { _, given in given })
        }
        for project in [setup.project] + (setup.mapping[kind] ?? []) {
            guard let url = endpoint.url(of: project) else { continue }
            pipeline.recorder.record(BloomreachRecord(url: url, body: body.limited()), owner: project.token)
        }
    }

    // MARK: Delivery

    /// Sends all events that can be sent now. The result has project tokens in place of user IDs.
    ///
    /// - Returns: The outcome of each request.
    @discardableResult
    public func flush() async -> FlushResult {
        TokenProviderCall.isInside ? .calledFromTokenProvider : await pipeline.engine.flush()
    }

    /// Replaces the flush policy.
    public func setFlushPolicy(_ policy: FlushPolicy) {
        pipeline.configure(policy, batchEvents: 1)
    }

    /// Returns the counters of the queue, and the reasons for which events wait, with project tokens as user IDs.
    public func snapshot() async -> CountersignSnapshot { await pipeline.snapshot() }

    /// Returns the events in quarantine, oldest first.
    ///
    /// - Returns: The events in quarantine.
    /// - Throws: `CountersignError` with `storageFailed` when the queue file cannot be read now.
    public func quarantinedEvents() async throws(CountersignError) -> [QuarantinedEvent] {
        try await pipeline.quarantined()
    }

    /// Moves all events of the quarantine back into the queue, such as after a server was repaired.
    ///
    /// - Returns: The number of events.
    /// - Throws: `CountersignError` with `storageFailed` when the queue file cannot be written now.
    @discardableResult
    public func requeueQuarantinedEvents() async throws(CountersignError) -> Int {
        try await pipeline.requeueQuarantined()
    }

    /// Deletes all events of the quarantine permanently.
    ///
    /// - Returns: The number of events.
    /// - Throws: `CountersignError` with `storageFailed` when the queue file cannot be written now.
    @discardableResult
    public func deleteQuarantinedEvents() async throws(CountersignError) -> Int {
        try await pipeline.deleteQuarantined()
    }

    /// Sets the closure called when a server rejects tracked data because of a project's API key; nil removes the
    /// closure. The events stay in the queue.
    public func onDeliveryFailure(_ handler: (@Sendable (CountersignError) -> Void)?) {
        guard let handler else { return pipeline.engine.failures.setHandler(nil) }
        pipeline.engine.failures.setHandler { failure in
            // An optional failure is a warning: the server has accepted the event.
            if failure.isOptional { return }
            handler(
                CountersignError(
                    .authorizationRefused, nil, failure.reason, projectToken: failure.userID,
                    authCode: failure.code.rawValue == 0 ? nil : failure.code))
        }
    }

    /// Removes all data of this device: waiting events, the customer and the session. Nothing is recorded afterwards.
    /// `close()` must still be called.
    ///
    /// - Throws: `CountersignError` with `storageFailed` when the queue file cannot be written now. Retry then.
    public func wipeData() async throws(CountersignError) {
        pipeline.recorder.setOptedOut(true)
        notifyProviders(of: [:])
        try await pipeline.wipe(removeFiles)
    }

    /// Blocks, so that a client created afterwards finds no data.
    package func wipeDataNow() throws(CountersignError) {
        notifyProviders(of: [:])
        try pipeline.wipeAndStop(isLasting: false, removeFiles)
    }

    /// Makes caching providers drop the customer's tokens, so that the next customer does not get them.
    private func notifyProviders(of ids: [String: String]) {
        customerTokens.customerChanged(to: ids)
        userTokens.customerChanged(to: ids)
    }

    private var removeFiles: @Sendable () throws -> Void {
        let directory = pipeline.settings.directory
        return { [inbox] in
            inbox.wipe()
            try CustomerRecord.file(directory).remove()
            for name in ["customer.json", "device.json"] {
                let path = directory.appendingPathComponent(name).path
                if FileManager.default.fileExists(atPath: path) {
                    try FileManager.default.removeItem(atPath: path)
                }
            }
        }
    }

    /// Puts the session into the background, writes events to disk and stops. The next client sends remaining events.
    public func close() async {
        let now = pipeline.clock.now.timeIntervalSince1970
        device.change { $0.enterBackground(now: now) }
        await pipeline.close()
    }
}
