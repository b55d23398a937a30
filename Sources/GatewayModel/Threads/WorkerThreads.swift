internal import CountersignCore
internal import Foundation

/// Threads that do what they are given, in the order in which it was given. Whoever gives it bounds how much waits.
///
/// Some give way: the system runs them with the processor time that others leave. What is stored is read on such threads, so
/// that reading takes no time from storing. Dispatch hardly offers them on Linux: the gateway's queues of the quality
/// `utility` were seen at nice value 2. A thread has the priority of the one that starts it, so work that gives way must start none, which giving work to
/// Dispatch may do; and it must hold no lock that storing needs for longer than a few instructions.
package final class WorkerThreads: Sendable {
    private final class Work: @unchecked Sendable {
        private let condition = NSCondition()
        // The rest is guarded by `condition`.
        private var waiting: [@Sendable () -> Void] = []
        private var isOver = false

        func add(_ work: @escaping @Sendable () -> Void) {
            condition.lock()
            waiting.append(work)
            condition.signal()
            condition.unlock()
        }

        /// Waits for the next piece; nil once nothing is given any more.
        func next() -> (@Sendable () -> Void)? {
            condition.lock()
            defer { condition.unlock() }
            while waiting.isEmpty {
                if isOver { return nil }
                condition.wait()
            }
            return waiting.removeFirst()
        }

        func end() {
            condition.lock()
            isOver = true
            condition.broadcast()
            condition.unlock()
        }
    }

    /// The nice value of threads that give way (`setpriority(2)`). Beside one busy thread of the usual priority they get a tenth
    /// of a processor. Whoever waits for a lock that one of them holds, such as that of the memory allocator, waits as long as
    /// it does not run: at 19, the least of all, a seventieth, that was seen in what storing took.
    package static let nice: Int32 = 10

    private let work = Work()

    /// `name` is what the system shows of the threads, of which it keeps 15 characters.
    package init(name: String, count: Int = 1, givesWay: Bool) {
        for _ in 0..<count {
            let thread = Thread { [work] in
                if givesWay { Self.giveWay() }
                while let next = work.next() { next() }
            }
            thread.name = name
            if givesWay { thread.qualityOfService = .utility }
            thread.start()
        }
    }

    /// What was given is still done.
    deinit {
        work.end()
    }

    package func async(_ work: @escaping @Sendable () -> Void) {
        self.work.add(work)
    }

    /// Does a piece of work and waits for it. Not to be called on one of the threads.
    package func sync<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) throws -> Value {
        let result = Lock<Result<Value, any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
        async {
            let found = Result { try work() }
            result.withLock { $0 = found }
            done.signal()
        }
        while true {
            done.wait()
            if let found = result.withLock({ $0 }) { return try found.get() }
        }
    }

    /// Lowers the priority of the thread that calls this, for good: only a privileged process may raise it again.
    package static func giveWay() {
        #if os(Linux)
            // Here 0 is the calling thread, not its process.
            setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, nice)
        #endif
    }
}
