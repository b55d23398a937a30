#if os(Linux)
    import CountersignCore
    import CountersignGatewayTesting
    import Foundation
    import Testing

    @testable import CountersignGateway
    @testable import GatewayAdmin
    @testable import GatewayDialects
    @testable import GatewayHTTP
    @testable import GatewayModel
    @testable import GatewayObservability
    @testable import GatewayStorage
    @testable import GatewayStream
    @testable import GatewayWebhooks

    /// Whoever reads what is stored gives way to those that store.
    @Suite(.ownThreads, .timeLimit(.minutes(5)))
    struct GivingWayTests {
        /// Gathers the nice values of threads.
        private final class Seen: Sendable {
            private let values = Lock<[Int32]>([])
            private let came = DispatchSemaphore(value: 0)

            func note() {
                let nice = try? niceOfThisThread()
                values.withLock { $0.append(nice ?? .min) }
                came.signal()
            }

            func next() throws -> Int32 {
                try came.waitForSignal()
                return values.withLock { $0.removeFirst() }
            }
        }

        /// A log without events, which notes who reads it.
        private struct EmptyLog: EventLog {
            let seen: Seen

            func newest(_: EventQuery, before _: Int64?, limit _: Int) -> EventPage { EventPage() }
            func oldest(_: EventQuery, after _: Int64, limit _: Int) -> EventPage { EventPage() }
            func follow(_: EventFollowing, after sequence: Int64, limit _: Int) -> EventStretch {
                seen.note()
                return EventStretch(reached: sequence)
            }
            func positions() -> EventPositions {
                EventPositions(logID: Array(repeating: 1, count: 16), head: 0)
            }
            func users(of _: String, after _: String, _: (String) -> Bool) {}
            func count() -> Int64 { 0 }
            func keyUses(of _: String) -> [KeyUse] { [] }
        }

        private let seen = Seen()

        @Test func readersOfEventsGiveWayAndTheTimersTheySetDoNot() throws {
            let usual = try niceOfThisThread()
            let timers = Seen()
            let polls = LongPolls(arrivals: EventArrivals(), now: { 0 }, schedule: { _, _ in timers.note() })
            let look: @Sendable () -> LongPolls.Look = { [seen] in
                seen.note()
                return .nothing(.text(200, ""), again: 5)
            }
            guard case .later(let start, let poll)? = polls.outcome(of: "shop", waitSeconds: 60, look: look)
            else { throw CancellationError() }
            start {}
            #expect(try seen.next() == WorkerThreads.nice)
            // That of the end of the wait, and that of the next look.
            #expect(try timers.next() == usual)
            #expect(try timers.next() == usual)
            withExtendedLifetime(poll) {}
        }

        @Test func exportsGiveWay() throws {
            let list = ListStream { [seen] in
                seen.note()
                return nil
            }
            let room = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 16)
            defer { room.deallocate() }
            _ = try list.body.read(into: room)
            #expect(try seen.next() == WorkerThreads.nice)
        }

        @Test(arguments: [("GET", true), ("POST", false)])
        func operatorsWhoOnlyReadGiveWay(method: String, givesWay: Bool) throws {
            let usual = try niceOfThisThread()
            let fixture = try GatewayFixture(.router)
            let route = AdminRoute(method, "/place", nil, "Notes who answers", .nothing) { [seen] call in
                seen.note()
                return .text(200, "")
            }
            let api = AdminAPI(
                directory: fixture.apps, publicURL: "https://example.com", routes: [route], now: { Date() },
                changed: {})
            let fields = HeaderBlock([("Origin", "https://example.com")])
            let request = HTTPRequest(
                method: method, path: "/admin/v1/place", fields: fields, receivedMilliseconds: 0)
            guard case .later(let start, _) = try #require(api.endpoints.first).handle(request, []) else {
                throw CancellationError()
            }
            let answered = DispatchSemaphore(value: 0)
            start { answered.signal() }
            try answered.waitForSignal()
            #expect(try seen.next() == (givesWay ? WorkerThreads.nice : usual))
        }

        @Test func webhooksReadWithoutTakingTimeFromOthers() throws {
            let bench = try StreamBench()
            let events = LoggedEvents(log: EmptyLog(seen: seen), store: try bench.storage.openDeliveries())
            let endpoint = WebhookEndpoint(
                id: "wh_1", appID: "shop", createdMilliseconds: 0, startSequence: 0)
            _ = try events.read(for: endpoint, after: 0, through: nil, isReplay: false)
            #expect(try seen.next() == WorkerThreads.nice)
        }

        @Test func filesAreWrittenWithoutTakingTimeFromOthers() throws {
            let folder = FileManager.default.temporaryDirectory.path + "/files-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let files = EventFiles(
                folder: folder, log: EmptyLog(seen: seen), apps: { ["shop"] },
                now: { Date(timeIntervalSince1970: 1_800_000_000) }, report: { _ in })
            files.finish()
            #expect(try seen.next() == WorkerThreads.nice)
        }

        @Test func sinksGiveWay() throws {
            let bench = try StreamBench()
            let dependencies = SinkDependencies(
                events: bench.storage.log, arrivals: bench.events.arrivals,
                consumers: bench.storage.openConsumers(with: bench.events, now: { 0 }),
                store: try bench.storage.openSinks(), log: GatewayLog(level: .off),
                now: { Date(timeIntervalSince1970: 1_800_000_000) },
                connect: { [seen, stream = bench.stream] _ throws(SinkError) in
                    seen.note()
                    return try stream.connect()
                })
            let worker = SinkWorker(try bench.sink(), dependencies)
            worker.start()
            #expect(try seen.next() == WorkerThreads.nice)
            worker.end()
            worker.wait(until: .now() + 60)
        }
    }
#endif
