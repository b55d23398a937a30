internal import CountersignCore
internal import Foundation
internal import GatewayDelivery
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

enum Webhooks {
    /// The time limit for a webhook's response in milliseconds, within the specification's recommendation.
    private static let timeout = 20_000

    static func runner(
        in storage: any Storage, stores: Stores, membership: Membership, log: GatewayLog
    ) throws(GatewayError) -> WebhookRunner {
        WebhookRunner(
            directory: try storage.openControl(as: .schedule),
            events: LoggedEvents(log: storage.log, store: stores.deliveries), store: stores.deliveries,
            log: log, now: membership.sharedTime, hasDuty: { membership.has(.webhooks) }
        ) { body, messageID, endpoint, isCancelled in
            let time = membership.sharedTime()
            let headers = StandardWebhook.headers(
                id: messageID, timestamp: Int64(time.timeIntervalSince1970), body: body,
                keys: endpoint.keys(atMilliseconds: Milliseconds(time).count))
            return WebhookDelivery(
                body: body, headers: headers, webhook: endpoint.target, timeoutMilliseconds: Self.timeout,
                isCancelled: isCancelled
            ).perform()
        }
    }

    /// The lag of each webhook; empty if the deliveries cannot be read.
    static func lags(
        _ storage: any Storage, _ endpoints: [WebhookEndpoint], at now: Date
    ) -> [Gauges.WebhookLag] {
        let progress = (try? storage.deliveries.progress()) ?? [:]
        return endpoints.map { endpoint in
            let oldest = storage.log.oldestUnread(of: endpoint, progress[endpoint.id])
            return Gauges.WebhookLag(
                appID: endpoint.appID, id: endpoint.id,
                seconds: oldest.map { max(0, now.timeIntervalSince1970 - Milliseconds($0).seconds) } ?? 0)
        }
    }
}
