internal import CountersignCore
internal import CountersignCrypto
package import Foundation
internal import GatewayDelivery
package import GatewayHTTP
package import GatewayIngest
package import GatewayModel
package import GatewayObservability
package import GatewayStorage

package final class Administration: Sendable {
    /// A separate connection, so that the gateway's other connections notice its changes.
    private let directory: AppDirectory
    private let api: AdminAPI
    private let now: @Sendable () -> Date
    private let watch: EnforcementWatch
    private let alerts: WebhookSender

    /// Without `backupFolder`, the database's own tools make backups. `refresh` makes the gateway load
    /// changes. `sendsAlerts` is false while another gateway sends alerts about many rejections.
    package init(
        configuration: GatewayConfiguration, storage: any Storage, backupFolder: String?,
        gateways: @escaping @Sendable () -> Int, sendsAlerts: @escaping @Sendable () -> Bool,
        registry: AppRegistry, refresh: @escaping @Sendable () throws(GatewayError) -> Void,
        tokenHealth: RefreshHealth,
        store: any EventStore, consumers: any EventConsumers, deliveries: DeliveryStore,
        outbound: OutboundPool, analytics: AnalyticsStore, recorder: AnalyticsRecorder,
        verifier: SampleVerifier, log: GatewayLog, now: @escaping @Sendable () -> Date,
        sharedTime: @escaping @Sendable () -> Date
    ) throws(GatewayError) {
        self.now = now
        let directory = try storage.openControl(as: .schedule)
        self.directory = directory
        let changed: @Sendable () -> Void = {
            do throws(GatewayError) {
                try refresh()
            } catch {
                log.note(.error, "a change is not loaded yet", [("detail", error.reason)])
            }
        }
        let alerts = WebhookSender(on: outbound, now: now)
        self.alerts = alerts
        watch = EnforcementWatch(
            // Its own connection: SQLite's data version changes only with commits of other connections.
            directory: try storage.openControl(as: .schedule), now: sharedTime,
            recent: Self.recent(storage, recorder, now), known: { recorder.knownTokens(of: $0, since: $1) },
            changed: changed,
            gateways: gateways, sendsAlerts: sendsAlerts,
            send: { alert, completion in
                let began = Milliseconds(now()).count
                alerts.send(
                    alert.body, id: alert.id, to: alert.webhook,
                    report: { attempt in
                        let record = DeliveryRecord(
                            attempt, of: DeliveryRecord.alerts(of: alert.appID), alert.id, .alert, nil,
                            alert.attempt, at: began)
                        do throws(GatewayError) {
                            try deliveries.add(record)
                        } catch {
                            log.note(.error, "alert attempt not recorded", [("detail", error.reason)])
                        }
                    }, completion: completion)
            }, freeSlots: { alerts.freeSlots }, log: log)
        let isSecure = configuration.tls != nil || configuration.publicURL?.hasPrefix("https:") == true
        let signIn = SignInRoutes(
            isSecure: isSecure, passwordCost: configuration.passwordCost, cluster: storage.cluster)
        let routes =
            signIn.all + SecondFactorRoutes(signIn: signIn).own
            + (try Self.storedRoutes(
                storage: storage, directory: directory, consumers: consumers, deliveries: { deliveries },
                backupFolder: backupFolder, diskFloorBytes: configuration.diskFloorBytes, registry: registry,
                writeKeyUses: { registry.writeKeyUses }, verifier: verifier,
                passwordCost: configuration.passwordCost, flush: { analytics.flush() },
                flushForReport: { analytics.flushForReport() }, now: now))
            + SystemRoutes(
                log: storage.log, store: store,
                diskFloorBytes: configuration.diskFloorBytes,
                cluster: storage.cluster,
                startedMilliseconds: Milliseconds(now()).count, recorder: recorder,
                registry: registry, tokenHealth: tokenHealth, settings: configuration.settings
            ).all.map { $0.on(.data) }
            + LiveRoutes(live: recorder.live).all
        api = AdminAPI(
            directory: directory, publicURL: configuration.publicURL, isSecure: isSecure, routes: routes,
            cluster: storage.cluster,
            now: now,
            changed: {
                changed()
                // The change must be in effect at each gateway when the response is sent.
                storage.cluster?.waitForGateways()
            })
    }

    /// Returns a function that counts an app's requests under the enforcement `required`, and the rejected among them,
    /// since a time. A gateway without a cluster counts to the second. With a shared database, the requests of all
    /// gateways are counted to the minute.
    private static func recent(
        _ storage: any Storage, _ recorder: AnalyticsRecorder, _ now: @escaping @Sendable () -> Date
    ) -> @Sendable (String, Int64) -> EnforcementWatch.Recent {
        guard storage.cluster != nil else {
            return { appID, since in
                let sum = recorder.recent(of: appID, since: since)
                return EnforcementWatch.Recent(requests: sum.required, rejected: sum.rejected)
            }
        }
        return { appID, since in
            var query = AnalyticsQuery(
                appID: appID, fromMilliseconds: since, toMilliseconds: Milliseconds(now()).count + 1)
            query.mode = .required
            // After an error, the next check reads again.
            guard let sum = try? storage.analytics.total(query, by: .minute) else {
                return EnforcementWatch.Recent()
            }
            return EnforcementWatch.Recent(requests: sum.accepted + sum.rejected, rejected: sum.rejected)
        }
    }

    /// The routes that work on stored data, with or without a running gateway.
    static func storedRoutes(
        storage: any Storage, directory: AppDirectory, consumers: any EventConsumers,
        deliveries: @escaping @Sendable () throws(GatewayError) -> DeliveryStore,
        backupFolder: String?, diskFloorBytes: Int = 0, registry: AppRegistry,
        writeKeyUses: (@Sendable () -> BytewiseDictionary<Int64>)?, verifier: SampleVerifier,
        passwordCost: Scrypt.Cost, flush: @escaping @Sendable () -> Void,
        flushForReport: @escaping @Sendable () -> Void, now: @escaping @Sendable () -> Date
    ) throws(GatewayError) -> [AdminRoute] {
        let families = try TokenFamilyDirectory(
            storage: storage, apps: directory, clock: { Milliseconds(now()).count })
        let activity = BoundedWait(queue: DispatchQueue(label: "admin activity"), milliseconds: 1_500)
        let settings: [AdminRoute] =
            AppRoutes(
                activity: { appID, now in
                    // If the report takes too long, apps are shown without it.
                    activity.result {
                        flushForReport()
                        return try? storage.analytics.activity(
                            of: appID, from: now - 86_400_000, to: now + 60_000)
                    } ?? nil
                }, writeKeyUses: writeKeyUses,
                customers: { () throws(GatewayError) in try storage.people.apps() }
            ).all + KeyRoutes(log: storage.log).all + KeySourceRoutes(registry: registry).all
            + IdentityProviderRoutes().all + TokenVerificationRoutes(registry: registry).all
            + ProjectRoutes().all + EnforcementRoutes().all + PeopleRoutes(passwordCost: passwordCost).all
            + SecondFactorRoutes.others
            + BackupRoutes(storage: storage, place: backupFolder, diskFloorBytes: diskFloorBytes).all
            + ClusterRoutes(cluster: storage.cluster).all + ErrorCodeRoutes().all
        let ofFamilies: [AdminRoute] =
            TokenServiceRoutes(families: families).all + RestrictionRoutes(families: families).all
        let data: [AdminRoute] =
            CustomerRoutes(
                log: storage.log, records: storage.people, families: families, deliveries: deliveries,
                flush: flush
            ).all + EventRoutes(log: storage.log).all
            + ConsumerRoutes(log: storage.log, consumers: consumers).all
            + WebhookRoutes(log: storage.log, consumers: consumers, deliveries: storage.deliveries).all
            + StreamRoutes(log: storage.log, consumers: consumers).all
            + FileRoutes(log: storage.log, consumers: consumers).all
            + AnalyticsRoutes(analytics: storage.analytics, flush: flushForReport).all
            + SampleRoutes(analytics: storage.analytics, flush: flushForReport, verifier: verifier).all
        return settings + ofFamilies.map { $0.on(.tokens) } + data.map { $0.on(.data) }
    }

    package var endpoints: [Endpoint] {
        api.endpoints + DashboardFiles().endpoints
    }

    /// The SDK for web pages, served on each listener.
    package let appEndpoints = BrowserClient().endpoints.map(\.forPages)

    /// A token for the one-time link to set the first password; nil if a user exists.
    package func makeSetupToken() throws(GatewayError) -> String? {
        guard try directory.admins.users().isEmpty else { return nil }
        return try directory.admins.makeSetupToken(at: Milliseconds(now()).count)
    }

    package func start() {
        watch.start()
    }

    package func waitForAlerts() {
        alerts.waitUntilIdle()
    }

    package func close() {
        watch.stop()
        api.close()
    }
}
