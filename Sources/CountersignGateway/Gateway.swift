internal import CountersignCore
package import Foundation
internal import GatewayAdmin
package import GatewayAdmission
internal import GatewayDialects
package import GatewayHTTP
public import GatewayModel
package import GatewayObservability
package import GatewayStorage
internal import GatewayTokens

/// The gateway: verifies each request's token, enforces, stores what it accepts, then answers.
///
/// ```swift
/// let gateway = try Gateway(configuration: GatewayConfiguration(dataDirectory: "data"))
/// try gateway.start()
/// // … until it is time to go
/// gateway.stop()
/// ```
public final class Gateway: Sendable {
    private let configuration: GatewayConfiguration
    private let registry: AppRegistry
    private let store: any EventStore
    private let customers: any CustomerStore
    /// What was counted; its recorder hears of every request.
    package let analytics: AnalyticsStore
    /// The verdicts as they come.
    package let live: LiveFeed
    /// Judges samples again.
    package let sampleJudge: SampleJudge
    private let tokens: TokenService
    private let server: HTTPServer
    /// Serves operators where they have an address of their own.
    private let adminServer: HTTPServer?
    private let admin: Administration
    private let log: GatewayLog
    private let certificates: TLSCertificates?
    private let backups: BackupSchedule
    private let boundPort = Lock<UInt16>(0)
    private let boundAdminPort = Lock<UInt16>(0)
    private let folderLock: Lock<DataDirectoryLock?>
    private let hasStopped = Lock(false)
    private let isDraining = Lock(false)

    /// Opens the data directory and everything in it; makes what is not there.
    ///
    /// - Parameter configuration: How the gateway runs.
    /// - Throws: `dataDirectory`, `alreadyRunning` or `storage`.
    public convenience init(configuration: GatewayConfiguration) throws(GatewayError) {
        try self.init(configuration: configuration, now: { Date() })
    }

    /// The same with a clock that tokens are judged by.
    package init(
        configuration: GatewayConfiguration, now: @escaping @Sendable () -> Date
    ) throws(GatewayError) {
        self.configuration = configuration
        let metrics = Metrics()
        let log = GatewayLog(level: configuration.logLevel)
        self.log = log
        let recorder = AnalyticsRecorder()
        live = recorder.live
        let observer = ObserverGroup(
            members: configuration.logLevel > .off
                ? [metrics, recorder, log] : [metrics, recorder])
        certificates = try configuration.tls.map { files throws(GatewayError) in
            try TLSCertificates(files: files) { problem in
                if let problem {
                    log.note(.error, "certificate not taken over", [("detail", problem)])
                } else {
                    log.note(.info, "certificate taken over")
                }
            }
        }
        let folder = try DataDirectory(path: configuration.dataDirectory)
        backups = BackupSchedule(dataDirectory: folder.path, rules: configuration.backups) { result in
            switch result {
            case .success(let backup): log.note(.info, "backup made", [("path", backup.path)])
            case .failure(let error): log.note(.error, "backup failed", [("detail", error.reason)])
            }
        }
        folderLock = Lock(try folder.lock())
        let storage = SQLiteStorage(folder: folder)
        let issued = IssuedTokens()
        registry = AppRegistry(
            directory: try storage.openControl(as: .account), issued: issued, now: now)
        try registry.refresh()
        tokens = try TokenService(
            storage: storage, apps: registry, issued: issued, limits: configuration.limits, log: log,
            now: now)
        store = try storage.openEvents(
            EventStoreOptions(
                pendingBytes: configuration.limits.pendingBytes,
                diskFloorBytes: configuration.diskFloorBytes, observer: observer,
                retention: { [registry] in registry.rules }))
        customers = try storage.openCustomers()
        analytics = try storage.openAnalytics(from: recorder) {
            log.note(.error, "analytics not written", [("detail", $0)])
        }
        let path = RequestPath(
            apps: registry, store: store, parsers: ParserPool(limits: configuration.limits),
            limits: configuration.limits,
            appLimiter: RateLimiter(rate: configuration.limits.requestsPerSecondPerApp), now: now)
        let connectionCount = Lock<@Sendable () -> Int>({ 0 })
        let store = store
        let monitoring = Monitoring(metrics: metrics, readers: configuration.metricsFrom) {
            Gauges(
                store: store.load, connections: connectionCount.withLock { $0 }(),
                droppedLogLines: log.droppedLines)
        }
        let dialects: [any Dialect] = [
            NativeDialect(
                path: path, publicURL: configuration.publicURL, isSecure: configuration.tls != nil),
            BrazeDialect(path: path),
            GeolocationDialect(path: path, tokens: tokens),
            BloomreachDialect(path: path, customers: customers, webhooks: WebhookSender(now: now)),
            OAuthEndpoints(service: tokens),
        ]
        let health = Health(
            store: store, diskFloorBytes: configuration.diskFloorBytes,
            isDraining: { [isDraining] in isDraining.withLock { $0 } },
            appsProblem: { [registry] in registry.problem })
        let endpoints = health.endpoints + monitoring.endpoints + dialects.flatMap(\.endpoints)
        sampleJudge = SampleJudge(recorder: recorder, apps: registry, now: now)
        admin = try Administration(
            configuration: configuration, storage: storage, backupFolder: backups.folder, registry: registry,
            store: store, analytics: analytics, recorder: recorder, judge: sampleJudge, log: log,
            now: now)
        let isApart = configuration.adminHost != nil
        let router = Router(
            endpoints + UnsupportedProtocol.endpoints + [
                Self.description(of: endpoints, schemas: dialects.map(\.schemas))
            ]
                + (isApart ? [] : admin.endpoints),
            refusals: dialects.compactMap(\.refusal) + [AdminAPI.refusal])
        let door = FrontDoor(
            router: router,
            addresses: RateLimiter(rate: configuration.limits.requestsPerSecondPerAddress),
            cors: CORS(
                requestHeaders: dialects.flatMap(\.requestHeaders),
                origins: { [registry] in registry.origins(of: $0) },
                originsOfAllApps: { [registry] in registry.originsOfAllApps }))
        let memory = BodyMemory(limit: configuration.limits.bodyMemoryBytes)
        let server = try HTTPServer(
            limits: configuration.limits, memory: memory, trustedProxies: configuration.trustedProxies,
            certificates: certificates, observer: observer, together: { store.together($0) }
        ) { door.answer($0) }
        if isApart {
            let door = FrontDoor(
                router: Router(admin.endpoints, refusals: [AdminAPI.refusal]), addresses: door.addresses,
                cors: door.cors)
            adminServer = try HTTPServer(
                limits: configuration.limits, memory: memory, trustedProxies: configuration.trustedProxies,
                certificates: certificates, observer: observer
            ) { door.answer($0) }
        } else {
            adminServer = nil
        }
        connectionCount.withLock { $0 = { [weak server] in server?.connectionCount ?? 0 } }
        self.server = server
    }

    /// Made when somebody first asks for it, which hardly anybody does.
    private static func description(
        of endpoints: [Endpoint], schemas: [[String: JSONValue]]
    ) -> Endpoint {
        let made = Lock<HTTPResponse?>(nil)
        return Endpoint(method: "GET", path: "/openapi.json") { _, _ in
            .answer(
                made.withLock { made in
                    if let made { return made }
                    let document = OpenAPIDocument(endpoints: endpoints, schemas: schemas)
                    var response = HTTPResponse.json(200, document.bytes)
                    response.isShared = true
                    made = response
                    return response
                })
        }
    }

    /// Binds the address and begins to serve.
    ///
    /// - Throws: `cannotBind`, or `storage` when the first write fails.
    public func start() throws(GatewayError) {
        try startWork()
        let port = try server.start(
            host: configuration.host, port: configuration.port)
        boundPort.withLock { $0 = port }
        if let adminServer, let host = configuration.adminHost {
            let port = try adminServer.start(host: host, port: configuration.adminPort)
            boundAdminPort.withLock { $0 = port }
        }
        folderLock.withLock { $0 }?.note(
            url: configuration.url(port: port), adminURL: configuration.adminURL(port: adminPort))
        announce(port: port)
    }

    /// Begins to serve nobody but this process, by ``service``.
    ///
    /// - Throws: `storage` when the first write fails.
    package func startInProcess() throws(GatewayError) {
        try startWork()
        announce(port: configuration.port)
    }

    /// Answers requests without a connection, those of operators too unless they have an address of their own.
    package var service: RequestService { server.service }

    private func startWork() throws(GatewayError) {
        try proveStore()
        registry.start()
        certificates?.start()
        backups.start()
        analytics.start()
    }

    /// Tells those who speak of the gateway to others where it is.
    private func announce(port: UInt16) {
        admin.start()
        tokens.start(urls: configuration.urls(port: port))
    }

    /// The port that it listens on; 0 before ``start()``.
    public var port: UInt16 { boundPort.withLock { $0 } }

    /// The port that operators use: one of their own, or that of all.
    public var adminPort: UInt16 {
        let own = boundAdminPort.withLock { $0 }
        return own == 0 ? port : own
    }

    /// A token for the one-time link that sets the first password; nil when there is a user already.
    ///
    /// - Throws: `storage`.
    package func makeSetupToken() throws(GatewayError) -> String? { try admin.makeSetupToken() }

    deinit {
        stop()
    }

    /// Stops accepting, answers the requests that have begun, commits, and closes. It cannot be started again.
    public func stop() {
        let isFirst = hasStopped.withLock { hasStopped in
            defer { hasStopped = true }
            return !hasStopped
        }
        guard isFirst else { return }
        isDraining.withLock { $0 = true }
        if boundPort.withLock({ $0 }) != 0, configuration.drainSeconds > 0 {
            Thread.sleep(forTimeInterval: configuration.drainSeconds)
        }
        server.stop(graceSeconds: configuration.stopGraceSeconds)
        adminServer?.stop(graceSeconds: configuration.stopGraceSeconds)
        admin.close()
        registry.stop()
        tokens.stop()
        certificates?.stop()
        backups.stop()
        customers.close()
        store.close()
        analytics.stop()
        log.close()
        folderLock.withLock { $0 = nil }
    }

    /// Takes over a changed certificate and changed apps now. What cannot be read is logged and looked at again later.
    package func reload() {
        certificates?.refresh()
        do throws(GatewayError) {
            try registry.refresh()
            log.note(.info, "reloaded")
        } catch {
            log.note(.error, "not reloaded", [("detail", error.reason)])
        }
    }

    /// Takes over a certificate that has changed, without waiting for the next look.
    package func refreshCertificates() {
        certificates?.refresh()
    }

    /// Takes over what others have changed in the directory of apps, without waiting for the next look.
    package func refreshApps() throws(GatewayError) {
        try registry.refresh()
        try tokens.refresh()
    }

    private func proveStore() throws(GatewayError) {
        let proof = Lock<Result<Void, StoreFailure>?>(nil)
        let done = DispatchSemaphore(value: 0)
        store.probe { outcome in
            proof.withLock { $0 = outcome }
            done.signal()
        }
        done.wait()
        if case .failure(let failure) = proof.withLock({ $0 }) {
            throw GatewayError(.storage, "\(failure.summary): \(failure.detail)")
        }
    }
}
