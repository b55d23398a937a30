package import CountersignCore

/// Counts delivery attempts by app and result.
package final class WebhookCounts: Sendable {
    package struct Attempts: Sendable, Equatable {
        package var delivered = 0
        package var failed = 0
    }

    private let attempts = Lock<BytewiseDictionary<Attempts>>([:])

    package init() {}

    package var byApp: BytewiseDictionary<Attempts> { attempts.withLock { $0 } }

    package func remove(_ appIDs: BytewiseSet) {
        attempts.withLock { attempts in
            for id in appIDs { attempts[id] = nil }
        }
    }

    package func add(_ appID: String, isDelivered: Bool) {
        attempts.withLock { attempts in
            if isDelivered {
                attempts[appID, default: Attempts()].delivered += 1
            } else {
                attempts[appID, default: Attempts()].failed += 1
            }
        }
    }
}
