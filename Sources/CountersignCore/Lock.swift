package import Foundation

/// A value that only one thread at a time can see.
///
/// The standard library's `Mutex` needs iOS 18 and macOS 15; this works from iOS 15 and macOS 13 on.
/// Never call out or resume a continuation while the lock is held.
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
