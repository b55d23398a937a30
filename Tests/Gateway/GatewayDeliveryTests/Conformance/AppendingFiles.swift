import CountersignCore
import Foundation
import GatewayDelivery
import GatewayModel
import GatewayStorage

/// A minimal kind of delivery, which appends events to one file. A new kind needs only such a type and its
/// registration with the runner.
struct AppendingFiles: WayKind {
    let kind = EventConsumerID.Kind.file
    let retry = Retry(first: 1, most: 60)
    let file: String
    let settings: Lock<DeliveryRoute?>
    let hasDuty: @Sendable () -> Bool

    func routes() -> [DeliveryRoute] { settings.withLock { $0.map { [$0] } ?? [] } }

    func open(_ id: EventConsumerID) -> any Way { AppendingFile(path: file) }

    private final class AppendingFile: Way {
        let path: String

        init(path: String) { self.path = path }

        func accept(_ batch: DeliveryBatch, _ done: @escaping @Sendable (DeliveryAnswer) -> Void) {
            guard let file = fopen(path, "a") else {
                return done(.retry(DeliveryFailure("file", String(cString: strerror(errno)))))
            }
            for event in batch.events { fputs(event.messageID + "\n", file) }
            fclose(file)
            done(.delivered(through: batch.scannedThrough))
        }

        func close() {}
    }
}
