#if canImport(Darwin)
    public import Foundation
#else
    public import Synchronization
#endif

/// A value that only one thread at a time can see.
///
/// The standard library's `Mutex` needs iOS 18 and macOS 15; this works from iOS 15 and macOS 13 on.
/// Never call out or resume a continuation while the lock is held.
///
/// A closure is kept in a struct, never by itself: a function that is the generic `Value` is wrapped once more, and for good,
/// each time that somebody looks at it, so each call costs more than the one before. `make lint` refuses it.
package typealias Lock = _Lock

/// What ``Lock`` stands for. Public only to be compiled into the modules that use it: what is `package` is called across modules as a
/// generic, whatever `@inlinable` says, which makes each look several times as expensive. Not for apps.
public final class _Lock<Value>: @unchecked Sendable {
    // `lock` guards `value`; nothing else touches it.
    #if canImport(Darwin)
        @usableFromInline let lock = NSLock()
    #else
        @usableFromInline let lock = Mutex<Void>(())
    #endif
    // Whoever looks at it holds the lock, so the runtime need not check that nobody else does.
    @exclusivity(unchecked) @usableFromInline var value: Value

    /// A lock around its first value.
    @inlinable public init(_ value: Value) {
        self.value = value
    }

    /// Runs `body` with exclusive access to the value, and throws what it throws.
    @inlinable public func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        #if canImport(Darwin)
            lock.lock()
            defer { lock.unlock() }
        #else
            // Its own `withLock` takes only what may be sent to another thread and back.
            lock._unsafeLock()
            defer { lock._unsafeUnlock() }
        #endif
        return try body(&value)
    }
}
