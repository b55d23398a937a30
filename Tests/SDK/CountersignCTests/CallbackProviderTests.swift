import CountersignCore
import CountersignTesting
import Foundation
import Testing

@testable import CountersignC

@Suite(.timeLimit(.minutes(5)))
struct CallbackProviderTests {
    private let clock = ManualClock()
    private let asked = Handshake()
    private let numbers = Lock([UInt64]())

    private func ask(_ number: UInt64) {
        numbers.withLock { $0.append(number) }
        asked.signal()
    }

    private func token(of provider: CallbackProvider) async -> String {
        do {
            return try await provider.token(within: 30, ask) ?? "none"
        } catch {
            return "late"
        }
    }

    private func number(of question: Int) async throws -> UInt64 {
        await asked.wait(count: question)
        return try #require(numbers.withLock { $0.count == question ? $0.last : nil })
    }

    @Test func aTokenRequestWithoutAResultTimesOut() async throws {
        let provider = CallbackProvider(clock: clock)
        async let first = token(of: provider)
        let number = try await number(of: 1)
        let deadline = await clock.waitForSleeper()
        #expect(deadline == clock.uptime + 30)
        clock.advance(to: deadline)
        #expect(await first == "late")
        // A late result is ignored, even while another request is pending.
        async let second = token(of: provider)
        let another = try await self.number(of: 2)
        provider.answer(number, "first")
        provider.answer(another, "second")
        #expect(await second == "second")
    }

    @Test func onlyTheFirstResultOfATokenRequestIsUsed() async throws {
        let provider = CallbackProvider(clock: clock)
        async let token = token(of: provider)
        let number = try await number(of: 1)
        clock.advance(to: await clock.waitForSleeper() - 1)
        provider.answer(number, "a")
        provider.answer(number, "b")
        #expect(await token == "a")
    }

    @Test func closingCompletesPendingCalls() async throws {
        let provider = CallbackProvider(clock: clock)
        async let token = token(of: provider)
        _ = try await number(of: 1)
        provider.end()
        #expect(await token == "none")
    }

    @Test func theProviderIsNotCalledAfterClosing() async {
        let provider = CallbackProvider(clock: clock)
        provider.end()
        #expect(await token(of: provider) == "none")
        #expect(numbers.withLock { $0 } == [])
    }

    @Test func cancellingTheTaskEndsItsTokenRequest() async throws {
        let provider = CallbackProvider(clock: clock)
        let task = Task { await token(of: provider) }
        _ = try await number(of: 1)
        task.cancel()
        #expect(await task.value == "none")
    }
}
