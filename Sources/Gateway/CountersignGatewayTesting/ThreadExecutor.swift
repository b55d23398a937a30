import Foundation

/// Runs `body` on separate threads, which may block on a socket, a disk or a database. Swift's shared pool
/// has one thread for each core, so a blocked thread would delay other tests.
package func onOwnThreads(_ body: () async throws -> Void) async rethrows {
    guard #available(macOS 15, *) else { return try await body() }
    try await withTaskExecutorPreference(ThreadExecutor()) { try await body() }
}

@available(macOS 15, *)
private final class ThreadExecutor: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        Thread.detachNewThread { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
