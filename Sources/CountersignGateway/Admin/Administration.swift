internal import CountersignCore
internal import Foundation

/// Everything for operators: the page, its API and what goes on by itself.
final class Administration: Sendable {
    /// A connection of its own: the gateway's other one notices what this one changes.
    private let directory: AppDirectory
    private let api: AdminAPI
    private let now: @Sendable () -> Date
    private let watch: EnforcementWatch

    init(
        configuration: GatewayConfiguration, dataDirectory: String, registry: AppRegistry,
        store: any EventStore,
        analytics: AnalyticsStore, recorder: AnalyticsRecorder, judge: SampleJudge,
        log: GatewayLog, now: @escaping @Sendable () -> Date
    ) throws(GatewayError) {
        self.now = now
        let directory = try AppDirectory(dataDirectory: dataDirectory, actor: .schedule)
        self.directory = directory
        let changed: @Sendable () -> Void = { try? registry.refresh() }
        let alerts = WebhookSender(now: now)
        watch = EnforcementWatch(
            directory: directory, now: now,
            recent: { appID, since in
                let sum = recorder.recent(of: appID, since: since)
                return (sum.judged, sum.rejected)
            }, changed: changed,
            send: { alert, completion in
                alerts.send(alert.body, id: alert.id, to: alert.webhook, completion: completion)
            }, log: log)
        let isSecure = configuration.tls != nil || configuration.publicURL?.hasPrefix("https:") == true
        let sessions = try SessionDirectory(
            dataDirectory: dataDirectory, clock: { Int64(now().timeIntervalSince1970 * 1000) })
        let routes =
            SignInRoutes(isSecure: isSecure).all
            + AppRoutes(
                activity: { appID, now in
                    analytics.flush()
                    return try AppActivity(of: appID, in: dataDirectory, at: now)
                }, writeKeyUses: { registry.writeKeyUses }
            ).all
            + KeyRoutes(dataDirectory: dataDirectory).all
            + KeySourceRoutes(registry: registry).all
            + ProjectRoutes().all
            + TokenServiceRoutes(sessions: sessions).all
            + EnforcementRoutes().all
            + EventRoutes(dataDirectory: dataDirectory).all
            + PeopleRoutes().all
            + SystemRoutes(
                dataDirectory: dataDirectory,
                backupFolder: configuration.backups.folder ?? dataDirectory + "/backups", store: store,
                diskFloorBytes: configuration.diskFloorBytes,
                startedMilliseconds: Int64(now().timeIntervalSince1970 * 1000), recorder: recorder,
                registry: registry, settings: configuration.settings
            ).all
            + AnalyticsRoutes(dataDirectory: dataDirectory, analytics: analytics).all
            + SampleRoutes(
                dataDirectory: dataDirectory, analytics: analytics, judge: judge, live: recorder.live
            ).all
        api = AdminAPI(
            directory: directory, publicURL: configuration.publicURL, routes: routes, now: now,
            changed: changed)
    }

    var endpoints: [Endpoint] { api.endpoints + DashboardFiles().endpoints }

    /// A token for the one-time link that sets the first password; nil when there is a user already.
    func makeSetupToken() throws(GatewayError) -> String? {
        guard try directory.users().isEmpty else { return nil }
        return try directory.makeSetupToken(at: Int64(now().timeIntervalSince1970 * 1000))
    }

    func start() {
        watch.start()
    }

    func close() {
        watch.stop()
        api.close()
    }
}
