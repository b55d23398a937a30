import CountersignCore
import Foundation
import GatewayModel
import GatewayTestSupport
import TestSupport
import Testing

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct ConditionTests {
    private let condition = Condition()

    /// By the wall clock these uptimes would be in 1970, and each wait would end at once.
    @Test func aWaitEndsByTheUptime() {
        let end = DispatchTime.now() + 0.05
        condition.withLock {
            while condition.wait(until: end) {}
        }
        #expect(DispatchTime.now() >= end)
        #expect(!condition.withLock { condition.wait(until: DispatchTime(uptimeNanoseconds: 0)) })
    }

    @Test(arguments: [nil, 60.0]) func aChangeEndsAWait(seconds: Double?) {
        let end = seconds.map { .now() + $0 } ?? DispatchTime.distantFuture
        let hasChanged = Lock(false)
        let thread = Thread { [condition] in
            condition.withLock {
                hasChanged.withLock { $0 = true }
                condition.signal()
            }
        }
        condition.withLock {
            // The new thread gets the lock only once this thread waits.
            thread.start()
            while !hasChanged.withLock({ $0 }), condition.wait(until: end) {}
        }
        #expect(hasChanged.withLock { $0 })
    }

    @Test func allWaitersAreWoken() {
        let waiting = Lock(0)
        let isOver = Lock(false)
        let done = DispatchSemaphore(value: 0)
        for _ in 0..<3 {
            Thread { [condition] in
                condition.withLock {
                    waiting.withLock { $0 += 1 }
                    condition.broadcast()
                    while !isOver.withLock({ $0 }) { condition.wait() }
                }
                done.signal()
            }.start()
        }
        condition.withLock {
            while waiting.withLock({ $0 }) < 3 { condition.wait() }
            isOver.withLock { $0 = true }
            condition.broadcast()
        }
        for _ in 0..<3 { #expect(throws: Never.self) { try done.waitForSignal() } }
    }

    @Test func aSemaphoreGrantsAsManyPermitsAsItHas() {
        let places = CountingSemaphore(value: 1)
        #expect(places.wait(until: .now()))
        let end = DispatchTime.now() + 0.05
        #expect(!places.wait(until: end))
        #expect(DispatchTime.now() >= end)
        Thread { places.signal() }.start()
        #expect(places.wait(until: .distantFuture))
        #expect(!places.wait(until: .now()))
    }
}
