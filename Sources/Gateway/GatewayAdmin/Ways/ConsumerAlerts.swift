internal import CountersignCore
package import Foundation
package import GatewayModel
package import GatewayObservability
package import GatewayStorage

/// Sends an alert and writes to the log when retention deletes unread events of a consumer whose hold expired.
package final class ConsumerAlerts: GatewayObserver {
    private let directory: AppDirectory
    private let log: GatewayLog
    private let now: @Sendable () -> Date
    /// A separate queue, because writing alerts to the control database must not delay the storage of events.
    private let queue = DispatchQueue(label: "consumer alerts")

    package init(directory: AppDirectory, log: GatewayLog, now: @escaping @Sendable () -> Date) {
        self.directory = directory
        self.log = log
        self.now = now
    }

    package func requestEnded(_ record: RequestRecord) {}
    package func eventsMissed(by consumer: String, ofKind kind: String, appID: String) {
        let alert: JSONValue = [
            "type": "consumer.events_missed",
            "timestamp": .string(RFC3339.text(milliseconds: Milliseconds(now()).count)),
            "data": ["app": .string(appID), "consumer": .string(consumer), "kind": .string(kind)],
        ]
        let milliseconds = Milliseconds(now()).count
        queue.async { [directory, log] in
            log.note(.error, "a consumer missed events", [("app", appID), ("consumer", consumer)])
            do throws(GatewayError) {
                try directory.alerts.queue(alert, of: appID, at: milliseconds)
            } catch {
                log.note(.error, "alert not stored", [("app", appID), ("detail", error.reason)])
            }
        }
    }
}
