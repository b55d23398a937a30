import Foundation

/// Runs `body` on threads of its own, which may then wait for a socket, a disk or a database: Swift's shared threads are as few
/// as there are cores, and one that waits holds up all other tests.
package func onOwnThreads(_ body: () async throws -> Void) async rethrows {
    guard #available(macOS 15, *) else { return try await body() }
    try await withTaskExecutorPreference(ThreadExecutor()) { try await body() }
}

/// Runs each job on a new thread.
@available(macOS 15, *)
private final class ThreadExecutor: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        Thread.detachNewThread { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
