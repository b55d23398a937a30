import Foundation

/// Runs each job on a new thread, which may then wait for a socket, a disk or a database: Swift's shared threads are as few
/// as there are cores, and one that waits holds up all other tests.
@available(macOS 15, *)
package final class ThreadExecutor: TaskExecutor {
    package init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        Thread.detachNewThread { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
