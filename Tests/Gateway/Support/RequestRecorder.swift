import CountersignCore
import Foundation
package import GatewayModel

/// An observer that stores the records of requests, so that a test can wait for them.
package final class RequestRecorder: GatewayObserver {
    private let records = Lock<[RequestRecord]>([])
    private let arrived = DispatchSemaphore(value: 0)

    package init() {}

    package func requestEnded(_ record: RequestRecord) {
        records.withLock { $0.append(record) }
        arrived.signal()
    }

    /// The next record; nil after 20 seconds.
    package func next() -> RequestRecord? {
        guard arrived.wait(timeout: .now() + 20) == .success else { return nil }
        return records.withLock { $0.removeFirst() }
    }
}
