package import Foundation

/// A mutex with a condition variable.
///
/// Timed waits use the monotonic clock. `NSCondition` uses the time of day, so its waits last longer when the
/// clock is set back.
package final class Condition: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        pthread_mutex_init(mutex, nil)
        #if canImport(Darwin)
            pthread_cond_init(changed, nil)
        #else
            var attributes = pthread_condattr_t()
            pthread_condattr_init(&attributes)
            let answer = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
            precondition(answer == 0, "this system cannot wait by its uptime: error \(answer)")
            pthread_cond_init(changed, &attributes)
            pthread_condattr_destroy(&attributes)
        #endif
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    package func lock() { pthread_mutex_lock(mutex) }

    package func unlock() { pthread_mutex_unlock(mutex) }

    package func withLock<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        lock()
        defer { unlock() }
        return try body()
    }

    /// Must be called under the lock. Wake-ups may be spurious.
    package func wait() { pthread_cond_wait(changed, mutex) }

    /// Waits until `end` at the latest. Returns false after a timeout. `distantFuture` never times out.
    package func wait(until end: DispatchTime) -> Bool {
        if end == .distantFuture {
            wait()
            return true
        }
        #if canImport(Darwin)
            let now = DispatchTime.now()
            guard end > now else { return false }
            var time = Self.timespec(end.uptimeNanoseconds - now.uptimeNanoseconds)
            return pthread_cond_timedwait_relative_np(changed, mutex, &time) == 0
        #else
            // `DispatchTime` uses the same clock.
            var time = Self.timespec(end.uptimeNanoseconds)
            return pthread_cond_timedwait(changed, mutex, &time) == 0
        #endif
    }

    package func signal() { pthread_cond_signal(changed) }

    package func broadcast() { pthread_cond_broadcast(changed) }

    private static func timespec(_ nanoseconds: UInt64) -> Foundation.timespec {
        Foundation.timespec(
            tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    }
}
