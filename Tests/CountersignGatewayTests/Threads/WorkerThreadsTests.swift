import CountersignCore
import Foundation
import Testing

@testable import GatewayModel

/// Threads that do what they are given.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct WorkerThreadsTests {
    @Test func workIsDoneInItsOrder() throws {
        let threads = WorkerThreads(name: "test", givesWay: false)
        let done = Lock<[Int]>([])
        for number in 0..<100 { threads.async { done.withLock { $0.append(number) } } }
        try threads.sync {}
        #expect(done.withLock { $0 } == Array(0..<100))
    }

    @Test func asManyPiecesAreUnderWayAsThereAreThreads() throws {
        let threads = WorkerThreads(name: "test", count: 2, givesWay: false)
        let (first, second) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let done = DispatchSemaphore(value: 0)
        // Each waits for the other.
        threads.async {
            first.signal()
            second.wait()
            done.signal()
        }
        threads.async {
            second.signal()
            first.wait()
            done.signal()
        }
        try done.waitForSignal()
        try done.waitForSignal()
    }

    @Test func whatWaitsIsDoneWhenNobodyGivesWorkAnyMore() throws {
        let done = DispatchSemaphore(value: 0)
        do {
            let threads = WorkerThreads(name: "test", givesWay: false)
            for _ in 0..<10 { threads.async { done.signal() } }
        }
        for _ in 0..<10 { try done.waitForSignal() }
    }

    @Test func aFailureIsThatOfWhoWaits() {
        let threads = WorkerThreads(name: "test", givesWay: false)
        #expect(throws: CancellationError.self) { try threads.sync { throw CancellationError() } }
    }

    #if os(Linux)
        @Test func whatGivesWayHasThePriorityForThat() throws {
            let usual = try niceOfThisThread()
            #expect(
                try WorkerThreads(name: "test", givesWay: true).sync { try niceOfThisThread() }
                    == WorkerThreads.nice)
            #expect(try WorkerThreads(name: "test", givesWay: false).sync { try niceOfThisThread() } == usual)
            #expect(try niceOfThisThread() == usual, "no other thread has given way")
        }
    #endif
}

#if os(Linux)
    /// The nice value of the thread that asks (`proc_pid_stat(5)`, field 19).
    func niceOfThisThread() throws -> Int32 {
        let stat = try String(contentsOfFile: "/proc/thread-self/stat", encoding: .utf8)
        // The second field is a name in parentheses, which may hold blanks.
        let fields = try #require(stat.split(separator: ")").last).split(separator: " ")
        return try #require(Int32(fields[16]))
    }
#endif
