#if canImport(Darwin) || THREAD_SANITIZER
    public import Foundation
#else
    public import Synchronization
#endif

/// A value that one thread at a time can access. While the lock is held, do not call the app's code or resume a task.
///
/// Works from iOS 15 and macOS 13 on. The standard library's `Mutex` needs iOS 18 and macOS 15.
///
/// Store a closure in a struct, never as the `Value` itself. Each access would add a reabstraction thunk to the stored
/// closure, so its calls would become slower and slower. `make lint` rejects a `Lock` of a closure.
package typealias Lock = _Lock

/// The implementation of ``Lock``. Not for apps. It is public so that other modules can specialize it: a `package`
/// generic is called unspecialized across modules despite `@inlinable`, and each access is several times as
/// expensive.
public final class _Lock<Value>: @unchecked Sendable {
    // `lock` guards each access to `value`. ThreadSanitizer does not recognize the `Mutex` of Linux.
    #if canImport(Darwin) || THREAD_SANITIZER
        @usableFromInline let lock = NSLock()
    #else
        @usableFromInline let lock = Mutex<Void>(())
    #endif
    // Only accessed while the lock is held, so the runtime check for exclusive access is unnecessary.
    @exclusivity(unchecked) @usableFromInline var value: Value

    /// Creates a lock with an initial value.
    @inlinable public init(_ value: Value) {
        self.value = value
    }

    /// Runs `body` with exclusive access to the value, and throws what it throws.
    @inlinable public func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        #if canImport(Darwin) || THREAD_SANITIZER
            lock.lock()
            defer { lock.unlock() }
        #else
            // `Mutex.withLock` accepts only values that may be sent to another thread and back.
            lock._unsafeLock()
            defer { lock._unsafeUnlock() }
        #endif
        return try body(&value)
    }
}
