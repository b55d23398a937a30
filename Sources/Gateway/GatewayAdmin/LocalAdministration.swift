internal import CountersignCore
internal import CountersignCrypto
package import Foundation
package import GatewayHTTP
internal import GatewayIngest
package import GatewayModel
internal import GatewayObservability
package import GatewayStorage

/// The admin API without a socket, for an account with direct access to the storage. Gateways may be running.
/// Overview, settings and live results need a running gateway, so they are missing.
package final class LocalAdministration: Sendable {
    private let directory: AppDirectory
    private let routes: [AdminRoute]

    private let wait: @Sendable () -> Bool
    private let isLate: @Sendable () -> Void
    private let now: @Sendable () -> Date

    /// Without `directory`, opens one on `storage`. Without `backupFolder`, there are no backups. `isLate` is called if
    /// a running gateway has not loaded a change within some seconds. Throws `storage`.
    package init(
        storage: any Storage, directory: AppDirectory? = nil, backupFolder: String?,
        isLate: @escaping @Sendable () -> Void = {}, now: @escaping @Sendable () -> Date = { Date() }
    ) throws(GatewayError) {
        let directory = if let directory { directory } else { try storage.openControl(as: .account) }
        self.now = now
        self.directory = directory
        self.isLate = isLate
        wait = { storage.waitForGateways() }
        // The registry is not started, because only a running gateway fetches published key sets.
        let registry = AppRegistry(directory: directory, now: now)
        routes =
            [SignInRoutes.whoIs]
            + (try Administration.storedRoutes(
                storage: storage, directory: directory,
                consumers: storage.openConsumers(with: nil, now: { Milliseconds(now()).count }),
                deliveries: { () throws(GatewayError) in try storage.openDeliveries() },
                backupFolder: backupFolder, registry: registry, writeKeyUses: nil,
                verifier: SampleVerifier(recorder: AnalyticsRecorder(), apps: registry, now: now),
                passwordCost: .password, flush: {}, flushForReport: {}, now: now))
    }

    /// Handles a request like the gateway, on behalf of the account, and waits until running gateways have
    /// loaded a change. Errors are returned as responses. The caller reads the pages of an export from its `stream`.
    package func answer(
        _ method: String, _ path: String, query: String?, ifMatch: String?, body: [UInt8]
    ) -> HTTPResponse {
        let account = Operator.account
        let identity = AdminIdentity(name: account.name, role: .owner, ownsData: true)
        let milliseconds = Milliseconds(now()).count
        let router = Router(
            routes.map { [directory] route in
                Endpoint(
                    method: route.operation.method, path: AdminOperation.prefix + route.operation.path
                ) { request, parameters in
                    var request = AdminRequest(request, parameters)
                    request.ifMatch = ifMatch
                    return .answer(
                        AdminAPI.respond(request) {
                            try route.respond(request, identity, directory, at: milliseconds)
                        })
                }
            }, rejections: [AdminAPI.rejection])
        let request = HTTPRequest(
            method: method, path: AdminOperation.prefix + path, query: query,
            receivedMilliseconds: milliseconds, body: body)
        guard case .answer(let response) = router.route(request) else {
            preconditionFailure("every route here answers at once")
        }
        // Waits, so that running gateways use the change when the response is returned.
        if method != "GET", (200..<300).contains(response.status), !wait() { isLate() }
        return response
    }
}
