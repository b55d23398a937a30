internal import CountersignCore
internal import CountersignJOSE
internal import Foundation
internal import GatewayAdmin
internal import GatewayDelivery
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

/// The listeners: the main listener, and a second listener if the admin API has its own address.
struct Servers: Sendable {
    let main: HTTPServer
    /// Nil if the admin API uses the main listener.
    let admin: HTTPServer?
    /// A weak reference to the server, which is created last but used by the gauges.
    private struct Served {
        weak var main: HTTPServer?
    }

    /// Measures the gauges of `/metrics`. May wait for the disk.
    let gauges: @Sendable () -> Gauges

    init(
        _ configuration: GatewayConfiguration, dialects: [any Dialect], admin: Administration, health: Health,
        apps: AppRegistry, verifiedTokens: VerifiedTokenCache, stores: Stores, delivery: Delivery,
        membership: Membership,
        observability: Observability, certificates: TLSCertificates?,
        now: @escaping @Sendable () -> Date
    ) throws(GatewayError) {
        let limits = configuration.limits
        let events = stores.events
        let log = observability.log
        let served = Lock(Served())
        let exporter = observability.exporter
        let gauges: @Sendable () -> Gauges = {
            let load = events.load
            return Gauges(
                store: load, connections: served.withLock { $0.main?.connectionCount ?? 0 },
                tokens: (
                    verifiedTokens.count, verifiedTokens.byteCount, verifiedTokens.hits, verifiedTokens.misses
                ),
                droppedLogLines: log.droppedLines, uncountedRequests: stores.analytics.dropped,
                droppedSpans: exporter?.droppedSpans,
                lags: stores.lags(at: now()),
                webhookAttempts: delivery.webhookCounts.byApp.mapValues { ($0.delivered, $0.failed) },
                ways: delivery.runner.counts.map { ($0.id, $0.events, $0.isFailing) },
                cluster: membership.gauges(load.database))
        }
        self.gauges = gauges
        let monitoring = Monitoring(
            metrics: observability.metrics, readers: configuration.metricsFrom, gauges: gauges)
        let isApart = configuration.adminHost != nil
        let endpoints = health.endpoints + monitoring.endpoints + dialects.flatMap(\.endpoints)
        let description = OpenAPIDocument.endpoint(for: endpoints, schemas: dialects.map(\.schemas))
        let router = Router(
            endpoints + UnsupportedProtocol.endpoints.map(\.forPages) + [description] + admin.appEndpoints
                + (isApart ? [] : admin.endpoints),
            rejections: dialects.compactMap(\.rejection) + [AdminAPI.rejection])
        let middleware = Middleware(
            router: router,
            addresses: AddressLimiter(
                rate: limits.requestsPerSecondPerAddress, sharers: { membership.gateways }),
            cors: CORS(
                requestHeaders: dialects.flatMap(\.requestHeaders),
                methods: { router.methodsForPages(of: $0) }, origins: { apps.origins(of: $0) },
                originsOfAllApps: { apps.originsOfAllApps }))
        let credentialHeaders = dialects.flatMap(\.credentialHeaders) + AdminAPI.credentialHeaders
        let memory = BodyMemory(limit: limits.bodyMemoryBytes)
        let report: @Sendable (String) -> Void = {
            log.note(.error, "no file descriptor is left", [("hint", $0)])
        }
        let main = HTTPServer(
            limits: limits, memory: memory, trustedProxies: configuration.trustedProxies,
            certificates: certificates, observer: observability.observer, sampler: observability.sampler,
            credentialHeaders: credentialHeaders,
            loopCount: configuration.loopCount ?? HTTPServer.usualLoopCount, now: now, report: report,
            together: { events.together($0) }, decorate: { middleware.makeReadable(&$0, for: $1) },
            handler: membership.guarding { middleware.answer($0) })
        served.withLock { $0.main = main }
        self.main = main
        guard isApart else {
            self.admin = nil
            return
        }
        let adminMiddleware = Middleware(
            router: Router(admin.endpoints + admin.appEndpoints, rejections: [AdminAPI.rejection]),
            addresses: middleware.addresses,
            cors: middleware.cors)
        self.admin = HTTPServer(
            limits: limits, memory: memory, trustedProxies: configuration.trustedProxies,
            certificates: certificates, observer: observability.observer, sampler: observability.sampler,
            credentialHeaders: credentialHeaders, now: now, report: report
        ) { adminMiddleware.answer($0) }
    }

    func stop(graceSeconds: Double) {
        main.stop(graceSeconds: graceSeconds)
        admin?.stop(graceSeconds: graceSeconds)
    }
}

extension OpenAPIDocument {
    /// Serves the document, which is built at the first request because it is rarely used.
    fileprivate static func endpoint(
        for endpoints: [Endpoint], schemas: [JSONObject]
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
}
