internal import CountersignCore
internal import CountersignJOSE
package import Foundation
internal import GatewayAdmin
internal import GatewayDelivery
package import GatewayHTTP
package import GatewayIngest
public import GatewayModel
package import GatewayObservability
package import GatewayStorage

/// The gateway: verifies tokens, enforces policies, stores accepted events and responds.
///
/// ```swift
/// let gateway = try Gateway(configuration: GatewayConfiguration(dataDirectory: "data"))
/// try gateway.start()
/// // … run until the process should end
/// gateway.stop()
/// ```
public final class Gateway: Sendable {
    private let configuration: GatewayConfiguration
    private let observability: Observability
    private let certificates: TLSCertificates?
    private let folder: LockedDataDirectory
    private let membership: Membership
    private let exchange: GatewayExchange
    private let registry: AppRegistry
    private let tokens: TokenService
    private let stores: Stores
    package let sampleVerifier: SampleVerifier
    private let delivery: DeliveryRunner
    private let admin: Administration
    private let servers: Servers
    private let polls: LongPolls
    private let deletedApps: DeletedApps
    /// Nil if the gateway stores its data in PostgreSQL.
    private let localChanges: LocalChanges?
    private let boundPort = Lock<UInt16>(0)
    private let boundAdminPort = Lock<UInt16>(0)
    private let hasStopped = Lock(false)
    private let isDraining = Lock(false)

    /// Opens the data directory and creates missing files.
    ///
    /// - Parameter configuration: The gateway's settings.
    /// - Throws: `dataDirectory`, `alreadyRunning`, `storage`, `invalid` for a setting or a file that it names, or
    ///   `conflict` for unsupported data or an unfinished copy or restore.
    public convenience init(configuration: GatewayConfiguration) throws(GatewayError) {
        try self.init(configuration: configuration, now: { Date() })
    }

    package init(
        configuration: GatewayConfiguration, now: @escaping @Sendable () -> Date,
        dialects others: (RequestPath) -> [any Dialect] = { _ in [] }
    ) throws(GatewayError) {
        let wanted = configuration.limits.connections
        var configuration = configuration
        configuration.limits.connections = ProcessLimits.connections(
            wanted, listeners: configuration.adminHost == nil ? 1 : 2, openFiles: ProcessLimits.openFiles)
        self.configuration = configuration
        observability = try Observability(configuration, now: now)
        if configuration.limits.connections < wanted {
            observability.log.note(
                .warning, "fewer connections than configured",
                [
                    ("connections", String(configuration.limits.connections)),
                    ("configured", String(wanted)), ("open_files", String(ProcessLimits.openFiles)),
                    ("hint", "raise the limit of open files: LimitNOFILE= in the systemd unit, or ulimit -n"),
                ])
        }
        certificates = try observability.certificates(configuration.tls)
        folder = try LockedDataDirectory(configuration, log: observability.log, now: now)
        let storage = folder.storage
        membership = Membership(in: storage.cluster, now: now)
        let gateways: @Sendable () -> Int = { [membership] in membership.gateways }
        let verifiedTokens = VerifiedTokenCache()
        let issued = IssuedTokens(cache: verifiedTokens)
        let memory = AppMemory(observability)
        // Background tasks have their own connection. The registry notices only changes by other connections,
        // and requests of operators must not wait for these writes.
        let background = try storage.openControl(as: .schedule)
        registry = AppRegistry(
            directory: try storage.openControl(as: .account), issued: issued, cache: verifiedTokens,
            sharesKeys: storage.cluster != nil, sharers: gateways,
            health: observability.readHealth(of: "apps"),
            removed: { [memory] in memory.remove($0) },
            reportKeys: { [log = observability.log] app, problem in
                if let problem {
                    log.note(
                        .warning, "published keys cannot be fetched", [("app", app), ("detail", problem)])
                } else {
                    log.note(.info, "published keys are fetched again", [("app", app)])
                }
            }, now: now)
        try registry.refresh()
        tokens = try TokenService(
            storage: storage, apps: registry, issued: issued, limits: configuration.limits,
            gateways: gateways, log: observability.log, health: observability.readHealth(of: "sessions"),
            now: now)
        stores = try Stores(
            in: storage, configuration, apps: registry, observability: observability,
            alerts: ConsumerAlerts(directory: background, log: observability.log, now: now), now: now)
        let exchange = GatewayExchange(
            membership.channel, gateways: gateways, observability.recorder.live,
            SampleVerifier(recorder: observability.recorder, apps: registry, now: now), storage.analytics)
        self.exchange = exchange
        sampleVerifier = SampleVerifier(
            recorder: observability.recorder, apps: registry, now: now, elsewhere: exchange.verify)
        let outbound = OutboundPool()
        let ways = try Delivery(
            configuration, in: storage, stores: stores, membership: membership, outbound: outbound,
            log: observability.log)
        memory.setDelivery(ways.webhookCounts, arrivals: stores.events.arrivals)
        delivery = ways.runner
        let refresh: @Sendable () throws(GatewayError) -> Void = {
            [registry, tokens, delivery] () throws(GatewayError) in
            try registry.refresh()
            try tokens.refresh()
            delivery.check()
        }
        admin = try Administration(
            configuration: configuration, storage: storage,
            backupFolder: folder.backups?.folder,
            gateways: gateways, sendsAlerts: { [membership] in membership.has(.enforcementAlerts) },
            registry: registry,
            refresh: refresh, tokenHealth: tokens.health, store: stores.events, consumers: stores.consumers,
            deliveries: stores.deliveries, outbound: outbound, analytics: stores.analytics,
            recorder: observability.recorder, verifier: sampleVerifier, log: observability.log, now: now,
            sharedTime: membership.sharedTime)
        let health = Health(
            store: stores.events,
            diskFloorBytes: configuration.diskFloorBytes,
            isCurrent: { [membership] in membership.isCurrent },
            isDraining: { [isDraining] in isDraining.withLock { $0 } },
            reads: [("apps", registry.health), ("sessions", tokens.health)])
        polls = LongPolls(arrivals: stores.events.arrivals)
        let dialects = try Dialects.all(
            configuration, storage: storage, apps: registry, stores: stores, tokens: tokens, polls: polls,
            outbound: outbound, gateways: gateways, now: now, others: others)
        servers = try Servers(
            configuration, dialects: dialects, admin: admin, health: health, apps: registry,
            verifiedTokens: verifiedTokens, stores: stores,
            delivery: ways, membership: membership,
            observability: observability,
            certificates: certificates, now: now)
        deletedApps = DeletedApps(
            directory: background, registry: registry,
            data: [stores.events, stores.analytics, tokens.store, stores.deliveries, memory],
            families: tokens.store,
            freed: { [live = observability.recorder.live] in live.forget([$0]) },
            hasDuty: { [membership] in membership.has(.deletedApps) }, log: observability.log,
            now: membership.sharedTime)
        localChanges = folder.changes(load: refresh)
    }

    package var analytics: AnalyticsStore { stores.analytics }

    package func waitForWebhooks() {
        delivery.waitUntilIdle()
        admin.waitForAlerts()
    }

    package var live: LiveFeed { observability.recorder.live }

    /// Binds the address and starts to serve.
    ///
    /// - Throws: `cannotBind`, or `storage` when the first write fails, except on a full disk.
    public func start() throws(GatewayError) {
        try startWork()
        let port = try servers.main.start(host: configuration.host, port: configuration.port)
        boundPort.withLock { $0 = port }
        if let server = servers.admin, let host = configuration.adminHost {
            let port = try server.start(host: host, port: configuration.adminPort)
            boundAdminPort.withLock { $0 = port }
        }
        folder.note(
            RunningGateway(
                url: configuration.url(port: port), adminURL: configuration.adminURL(port: adminPort),
                dashboardURL: configuration.dashboardURL(port: adminPort)))
        membership.announce(configuration, port: port, adminPort: adminPort)
        announce(port: port)
    }

    package func apps() throws(GatewayError) -> [App] { try folder.storage.openControl(as: .account).apps() }

    /// Serves requests of this process only, with ``service``. Throws `storage` as ``start()`` does.
    package func startInProcess() throws(GatewayError) {
        try startWork()
        announce(port: configuration.port)
    }

    /// Handles requests without a connection, including the admin API unless it has its own address.
    package var service: RequestService { servers.main.service }

    private func startWork() throws(GatewayError) {
        try stores.prove(observability.log)
        // In a cluster, another gateway may write event files and need the positions.
        if configuration.eventFilesFolder == nil, folder.storage.cluster == nil {
            stores.deleteFilePositions(observability.log)
        }
        try membership.start(
            duties: Set(
                ClusterDuty.allCases.filter { $0 != .eventFiles || configuration.eventFilesFolder != nil }),
            refresh: { [registry, tokens] in
                try registry.refresh()
                try tokens.refresh()
            },
            traffic: { [recorder = observability.recorder] in recorder.traffic(until: $0) },
            log: observability.log)
        exchange.start()
        registry.start()
        certificates?.start()
        folder.backups?.start()
        stores.analytics.start()
        deletedApps.start()
        delivery.start()
        localChanges?.start()
        observability.exporter?.start(gauges: servers.gauges)
    }

    private func announce(port: UInt16) {
        admin.start()
        tokens.start(urls: configuration.urls(port: port))
    }

    /// The listening port; 0 before ``start()``.
    public var port: UInt16 { boundPort.withLock { $0 } }

    /// The port of the admin API, which may be the main port.
    public var adminPort: UInt16 {
        let own = boundAdminPort.withLock { $0 }
        return own == 0 ? port : own
    }

    package func makeSetupToken() throws(GatewayError) -> String? { try admin.makeSetupToken() }

    deinit {
        stop()
    }

    /// Serves for `drainSeconds` more, stops accepting, completes requests within `stopGraceSeconds`, and closes.
    /// The first call blocks until the gateway is closed. The gateway cannot be started again.
    public func stop() {
        let isFirst = hasStopped.withLock { hasStopped in
            defer { hasStopped = true }
            return !hasStopped
        }
        guard isFirst else { return }
        isDraining.withLock { $0 = true }
        delivery.drain()
        let began = DispatchTime.now()
        if boundPort.withLock({ $0 }) != 0, configuration.drainSeconds > 0 {
            Thread.sleep(forTimeInterval: configuration.drainSeconds)
        }
        polls.drain()
        servers.stop(graceSeconds: configuration.stopGraceSeconds)
        localChanges?.stop()
        let end = began + configuration.drainSeconds + configuration.stopGraceSeconds
        let left = {
            max(0, (Double(end.uptimeNanoseconds) - Double(DispatchTime.now().uptimeNanoseconds)) / 1e9)
        }
        delivery.stop(graceSeconds: left())
        // The stores are still open here, because the last export measures them.
        observability.exporter?.close(within: min(2, max(0.1, left())))
        exchange.stopWaiting()
        admin.close()
        deletedApps.stop()
        // The membership ends after serving. Until then, other gateways wait for this one to load their changes.
        membership.stop()
        exchange.stop()
        registry.stop()
        tokens.stop()
        certificates?.stop()
        folder.backups?.stop()
        stores.close()
        deletedApps.wait()
        observability.log.close()
        folder.unlock()
    }

    /// Loads changed certificates and apps now. Errors are logged and the load is retried later.
    package func reload() {
        certificates?.refresh()
        do throws(GatewayError) {
            try registry.refresh()
            observability.log.note(.info, "reloaded")
        } catch {
            observability.log.note(.error, "not reloaded", [("detail", error.reason)])
        }
    }

    package func eraseDeletedApps() { deletedApps.finish() }

    /// Loads changes of apps and tokens now instead of at the next check.
    package func refreshApps() throws(GatewayError) {
        try registry.refresh()
        try tokens.refresh()
    }
}
