import CountersignCore
import CountersignDelivery
import CountersignTesting
import Foundation
import Testing

@testable import CountersignBloomreach

@Suite(.timeLimit(.minutes(5)))
struct CustomerTokenCoordinatorTests {
    /// Never returns unless it is cancelled.
    private struct EndlessProvider: AsyncAuthorizationProvider {
        let isCancelled: Handshake

        func authorizationToken() async throws -> String? {
            await withTaskCancellationHandler {
                await Handshake().wait()
            } onCancel: {
                isCancelled.signal()
            }
            return nil
        }
    }

    @Test func aCallThatTimesOutWhileItStartsIsCancelled() async {
        let clock = ManualClock()
        let (isBeginning, isNext, isCancelled) = (Handshake(), Handshake(), Handshake())
        let calls = Lock(0)
        let coordinator = CustomerTokenCoordinator(
            provider: .suspending(EndlessProvider(isCancelled: isCancelled)), timeout: 30, clock: clock
        ) { body in
            let task = ProviderThread.run(body)
            let call = calls.withLock { calls in
                calls += 1
                return calls
            }
            if call == 1 {
                isBeginning.signal()
                // The next call begins when this one has timed out.
                isNext.block()
            } else {
                isNext.signal()
            }
            return task
        }
        let outcomes = Lock([CustomerTokenCoordinator.Outcome]())
        // Runs on its own thread, because the call blocks the thread.
        let first = ProviderThread.run {
            let outcome = await coordinator.token(for: [:])
            outcomes.withLock { $0.append(outcome) }
        }
        await isBeginning.wait()
        clock.advance(by: 1)
        let second = Task { await coordinator.token(for: [:]) }
        let deadline = await clock.waitForSleeper(count: 2)
        clock.advance(to: deadline)
        await first.value
        #expect(outcomes.withLock { $0 } == [.timedOut])
        await isCancelled.wait()
        second.cancel()
        #expect(await second.value == .cancelled)
        clock.advance(by: 30)
        await isCancelled.wait(count: 2)
    }

    /// A provider that caches tokens would otherwise return an earlier customer's token.
    @Test func aBusyProviderIsStillInformedOfAnotherCustomer() async {
        let clock = ManualClock()
        let provider = BusyProvider()
        let coordinator = CustomerTokenCoordinator(provider: .instance(provider), timeout: 30, clock: clock)
        for call in 1...CustomerTokenCoordinator.maximumAbandoned {
            let outcome = Task { await coordinator.token(for: [:]) }
            await provider.isAsked.wait(count: call)
            clock.advance(to: await clock.waitForSleeper())
            #expect(await outcome.value == .timedOut)
        }
        for number in 1...300 { coordinator.customerChanged(to: ["registered": "\(number)"]) }
        for _ in 1...2 { clock.advance(to: await clock.waitForSleeper()) }
        await clock.waitForSleeper()
        provider.gate.signal()
        await provider.isNotified.wait()
        // A waiting notification is not dropped at its time limit, and only the latest is delivered.
        #expect(provider.customers.withLock { $0 } == ["300"])
    }

    private final class BusyProvider: AuthorizationProviderType, CustomerObserving {
        let isAsked = Handshake()
        let gate = Handshake()
        let isNotified = Handshake()
        let customers = Lock<[String]>([])

        func getAuthorizationToken() -> String? {
            isAsked.signal()
            gate.block()
            return nil
        }

        func customerChanged(to customerIDs: [String: String]) {
            customers.withLock { $0.append(customerIDs["registered"] ?? "") }
            isNotified.signal()
        }
    }
}
