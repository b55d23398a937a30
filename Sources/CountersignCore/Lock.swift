package import Foundation

/// A value that only one thread at a time can see.
///
/// The standard library's `Mutex` needs iOS 18 and macOS 15; this works from iOS 15 and macOS 13 on.
/// Never call out or resume a continuation while the lock is held.
///
/// A closure is kept in a struct, never by itself: a function that is the generic `Value` is wrapped once more, and for good,
/// each time that somebody looks at it, so each call costs more than the one before. `make lint` refuses it.
package final class Lock<Value>: @unchecked Sendable {
    // `lock` guards `value`; nothing else touches it.
    @usableFromInline let lock = NSLock()
    @usableFromInline var value: Value

    @inlinable package init(_ value: Value) {
        self.value = value
    }

    /// Runs `body` with exclusive access to the value.
    @inlinable package func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}
