import CountersignCore
import Dispatch
import GatewayHTTP
import GatewayModel
import Testing

@testable import GatewayDelivery

/// Requests that wait for events, with a manual clock.
@Suite(.timeLimit(.minutes(5)))
struct LongPollsTests {
    /// A manual clock with scheduled work.
    private final class Clock: Sendable {
        private struct State {
            var now: Int64 = 1_000
            var due: [(at: Int64, work: @Sendable () -> Void)] = []
            var scheduled: (@Sendable () -> Void)?
        }

        private let state = Lock(State())
        var now: Int64 { state.withLock { $0.now } }

        /// Sets a function to call whenever work is scheduled for later.
        func onSchedule(_ scheduled: @escaping @Sendable () -> Void) {
            state.withLock { $0.scheduled = scheduled }
        }

        /// Runs work immediately that is due within the pause between two polls.
        func schedule(_ time: Int64, _ work: @escaping @Sendable () -> Void) {
            let isDue = state.withLock { state in
                if time <= state.now + LongPolls.pause { return true }
                state.due.append((time, work))
                return false
            }
            if isDue { work() } else { state.withLock { $0.scheduled }?() }
        }

        func advance(_ milliseconds: Int64) {
            let due = state.withLock { state in
                state.now += milliseconds
                let due = state.due.filter { $0.at <= state.now }
                state.due.removeAll { $0.at <= state.now }
                return due
            }
            for each in due { each.work() }
        }
    }

    /// A request that counts its polls.
    private final class Reader: Sendable {
        let reads = AsyncStream<Int>.makeStream()
        let answered = AsyncStream<Void>.makeStream()
        private let count = Lock(0)
        private let found = Lock(false)
        private let again: Int64?
        private let gate: DispatchSemaphore?
        let released = AsyncStream<Void>.makeStream()

        init(again milliseconds: Int64? = nil, gate: DispatchSemaphore? = nil) {
            again = milliseconds
            self.gate = gate
        }

        deinit { released.continuation.yield() }

        func find() { found.withLock { $0 = true } }

        func read() -> LongPolls.ReadResult {
            let number = count.withLock { count in
                count += 1
                return count
            }
            reads.continuation.yield(number)
            gate?.wait()
            return found.withLock { $0 }
                ? .answer(.text(200, "found")) : .nothing(.text(200, "nothing"), againAfter: again)
        }

        func hasRead(_ number: Int) async {
            for await each in reads.stream where each >= number { return }
        }
    }

    private let clock = Clock()
    private let arrivals = EventArrivals()
    private let polls: LongPolls

    init() {
        polls = LongPolls(
            arrivals: arrivals, clock: { [clock] in clock.now },
            schedule: { [clock] in clock.schedule($0, $1) })
    }

    private func outcome(
        _ polls: LongPolls? = nil, of app: String = "shop", from address: String = "192.0.2.1",
        seconds: Int = 30, rejection: @autoclosure @escaping @Sendable () -> HTTPResponse? = nil,
        read: @escaping @Sendable () -> LongPolls.ReadResult = { .answer(.text(200, "found")) }
    ) -> HTTPOutcome {
        (polls ?? self.polls).outcome(
            of: app, from: address, waitSeconds: seconds, busy: .text(429, "busy"), check: rejection,
            read: read)
    }

    /// Begins a request. The result waits for the text of its answer.
    private func begin(
        _ reader: Reader, of app: String = "shop", from address: String = "192.0.2.1", seconds: Int = 30,
        rejection: @autoclosure @escaping @Sendable () -> HTTPResponse? = nil
    ) throws -> () async -> String? {
        guard
            case .later(let start, let poll) = outcome(
                of: app, from: address, seconds: seconds, rejection: rejection(), read: { reader.read() })
        else { throw CancellationError() }
        start { reader.answered.continuation.yield() }
        return {
            for await _ in reader.answered.stream { break }
            return poll().map { String(decoding: $0.body, as: UTF8.self) }
        }
    }

    @Test func newEventsWakeAWaitingRequest() async throws {
        let reader = Reader()
        let answer = try begin(reader)
        await reader.hasRead(1)
        reader.find()
        arrivals.note(["kiosk"])
        clock.advance(1_000)
        arrivals.note(["shop"])
        #expect(await answer() == "found")
    }

    @Test func aRequestWaitsAtMostItsTime() async throws {
        let reader = Reader()
        let answer = try begin(reader, seconds: 5)
        await reader.hasRead(1)
        clock.advance(5_000)
        #expect(await answer() == "nothing")
    }

    @Test func withoutWaitingTheAnswerComesAtOnce() async throws {
        let answer = try begin(Reader(), seconds: 0)
        #expect(await answer() == "nothing")
    }

    @Test func aWaitingPollReadsAgainWhenALeaseExpires() async throws {
        let reader = Reader(again: 3_000)
        let scheduled = AsyncStream<Void>.makeStream()
        clock.onSchedule { scheduled.continuation.yield() }
        let answer = try begin(reader)
        for await _ in scheduled.stream { break }
        reader.find()
        clock.advance(3_000)
        #expect(await answer() == "found")
    }

    @Test func drainingAnswersWaitingRequests() async throws {
        let reader = Reader()
        let answer = try begin(reader)
        await reader.hasRead(1)
        polls.drain()
        #expect(await answer() == "nothing")
        let late = try begin(Reader())
        #expect(await late() == "nothing")
    }

    /// Delay of each response of `paced`, in milliseconds.
    private static let pause = Int64((10 * (1 / ReadingPace.share - 1)).rounded(.up))

    /// Long polls whose queries use 10 ms of CPU time each, so that pacing delays each response.
    private var paced: LongPolls {
        let readings = Lock(0)
        arrivals.note(["shop"])
        return LongPolls(
            arrivals: arrivals, clock: { [clock] in clock.now },
            schedule: { [clock] in clock.schedule($0, $1) },
            pace: ReadingPace(arrivals: arrivals) {
                let reading = readings.withLock { count in
                    defer { count += 1 }
                    return Double(count)
                }
                return .init(clock: reading, ran: reading / 100)
            })
    }

    @Test(arguments: [false, true])
    func aDelayedResponseIsSentWhenDueOrWhenDraining(drains: Bool) async throws {
        let polls = paced
        let held = AsyncStream<Void>.makeStream()
        let answered = Lock(false)
        clock.onSchedule { held.continuation.yield() }
        guard case .later(let start, let poll) = outcome(polls, seconds: 0) else { throw CancellationError() }
        start { answered.withLock { $0 = true } }
        for await _ in held.stream { break }
        #expect(poll() == nil)
        clock.advance(Self.pause - 1)
        #expect(!answered.withLock { $0 })
        if drains { polls.drain() } else { clock.advance(1) }
        #expect(answered.withLock { $0 })
        #expect(poll()?.body == Array("found".utf8))
    }

    /// Waits for events of the app with the maximum number of requests.
    private func fill() async throws -> [() async -> String?] {
        var waiting: [() async -> String?] = []
        for _ in 0..<LongPolls.mostOfApp {
            let reader = Reader()
            waiting.append(try begin(reader))
            await reader.hasRead(1)
        }
        return waiting
    }

    @Test func waitingPollsOfAnAppAreLimited() async throws {
        let waiting = try await fill()
        #expect(try await begin(Reader(), seconds: 0)() == "busy")
        #expect(try await begin(Reader(), of: "kiosk", seconds: 0)() == "nothing")
        withExtendedLifetime(waiting) {}
    }

    /// The slot is free immediately, not only after the next poll.
    @Test func aDisconnectedRequestFreesItsSlot() async throws {
        var waiting = try await fill()
        waiting.removeLast()
        #expect(try await begin(Reader(), seconds: 0)() == "nothing")
        withExtendedLifetime(waiting) {}
    }

    @Test func requestsWithoutAValidTokenTakeNoSlotOfTheApp() async throws {
        let waiting = try await fill()
        #expect(try await begin(Reader(), rejection: .text(401, "invalid"))() == "invalid")
        withExtendedLifetime(waiting) {}
    }

    @Test func theTokenIsCheckedAgainOnceTheRequestHasASlot() async throws {
        let checks = Lock(0)
        @Sendable func rejection() -> HTTPResponse? {
            checks.withLock { checks in
                checks += 1
                return checks > 1 ? .text(401, "deleted") : nil
            }
        }
        #expect(try await begin(Reader(), rejection: rejection())() == "deleted")
    }

    @Test func requestsWithUncheckedTokensLeaveRoomForOtherAddresses() async throws {
        // Not started, so their tokens are not checked.
        let unchecked = (0..<64).map { _ in outcome() }
        guard case .answer(let response) = outcome() else { throw CancellationError() }
        #expect(response.status == 429)
        #expect(try await begin(Reader(), from: "192.0.2.2", seconds: 0)() == "nothing")
        withExtendedLifetime(unchecked) {}
    }

    /// Neither a timer nor a waiter retains an ended request with its response.
    @Test(arguments: [false, true]) func anEndedRequestIsReleasedBeforeItsDeadline(
        disconnects: Bool
    ) async throws {
        let gate = DispatchSemaphore(value: 0)
        let released = try await {
            let reader = Reader(gate: gate)
            let answer = try begin(reader)
            await reader.hasRead(1)
            if disconnects {
                _ = consume answer
                gate.signal()
            } else {
                gate.signal()
                reader.find()
                arrivals.note(["shop"])
                gate.signal()
                #expect(await answer() == "found")
            }
            return reader.released.stream
        }()
        for await _ in released { break }
    }
}
