#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// The monotonic clock, in nanoseconds. It stops while the machine sleeps; ``Uptime`` continues.
package enum MonotonicClock {
    package static let second: UInt64 = 1_000_000_000

    package static var now: UInt64 {
        #if canImport(Darwin)
            clock_gettime_nsec_np(CLOCK_UPTIME_RAW)
        #else
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            return UInt64(time.tv_sec) * second + UInt64(time.tv_nsec)
        #endif
    }
}
