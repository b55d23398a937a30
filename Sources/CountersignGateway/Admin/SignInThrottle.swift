internal import CountersignCore

/// Counts wrong passwords. After five for one name from one address, or twenty from one address, there are none for a
/// while: a minute first, then twice as long each time, up to an hour.
final class SignInThrottle: Sendable {
    private struct Attempts {
        var failures = 0
        var blockedUntil: Int64 = 0
        var lastMilliseconds: Int64 = 0
    }

    private static let capacity = 10_000
    private let attempts = Lock<[String: Attempts]>([:])

    /// Counts an attempt as failed until ``succeed(name:address:)`` says otherwise, so that many at once count too.
    ///
    /// - Returns: Seconds to wait, when this one may not be made.
    func begin(name: String, address: String, at milliseconds: Int64) -> Int? {
        attempts.withLock { attempts in
            let keys = [(Self.key(name, address), 5), (address, 20)]
            for (key, _) in keys {
                if let until = attempts[key]?.blockedUntil, until > milliseconds {
                    return Int((until - milliseconds + 999) / 1000)
                }
            }
            if attempts.count >= Self.capacity {
                attempts = attempts.filter { milliseconds - $0.value.lastMilliseconds < 3_600_000 }
                if attempts.count >= Self.capacity { attempts.removeAll() }
            }
            for (key, limit) in keys {
                var entry = attempts[key] ?? Attempts()
                if milliseconds - entry.lastMilliseconds > 3_600_000 { entry = Attempts() }
                entry.failures += 1
                entry.lastMilliseconds = milliseconds
                if entry.failures >= limit {
                    let minutes = min(60, 1 << min(6, entry.failures - limit))
                    entry.blockedUntil = milliseconds + Int64(minutes) * 60_000
                }
                attempts[key] = entry
            }
            return nil
        }
    }

    /// True from the last wrong password that is taken until the next may be tried.
    func isBlocked(name: String, address: String, at milliseconds: Int64) -> Bool {
        attempts.withLock { attempts in
            [Self.key(name, address), address].contains {
                attempts[$0].map { $0.blockedUntil > milliseconds } ?? false
            }
        }
    }

    /// The attempt's password was right.
    func succeed(name: String, address: String) {
        attempts.withLock { attempts in
            attempts[Self.key(name, address)] = nil
            guard var entry = attempts[address] else { return }
            entry.failures -= 1
            if entry.failures < 20 { entry.blockedUntil = 0 }
            attempts[address] = entry
        }
    }

    private static func key(_ name: String, _ address: String) -> String { "\(address) \(name)" }
}
