internal import Foundation

/// Runs each call of an app's provider on its own thread if `isApart`, so that it does not occupy Swift's pool.
package enum ProviderThread {
    /// False if tasks run on Swift's pool. The pool may have only two threads, so at most one call should run.
    package static var isApart: Bool {
        #if canImport(Darwin)
            guard #available(iOS 18, macOS 15, *) else { return false }
        #endif
        return true
    }

    @discardableResult
    package static func run(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        #if canImport(Darwin)
            guard #available(iOS 18, macOS 15, *) else {
                return Task.detached(operation: body)
            }
        #endif
        return Task.detached(executorPreference: ProviderExecutor(), operation: body)
    }
}

/// A serial queue as the executor of one task. Dispatch starts a thread for it even if all other threads block.
@available(iOS 18, macOS 15, *)
private final class ProviderExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "countersign.provider", qos: .utility)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
