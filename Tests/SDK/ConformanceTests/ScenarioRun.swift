import CountersignCore
import CountersignTesting
import Foundation
import TestSupport

@testable import CountersignDelivery
@testable import CountersignTransport

/// Runs the steps of one scenario and waits after each until the client is idle.
final class ScenarioRun {
    private enum Rest: Sendable {
        case idle(until: TimeInterval?)
        case blocked
    }

    /// Number of engine turns after which a client with a pending provider call counts as idle.
    private static let turns = 64

    private var scenario: Scenario
    private let clock = ScenarioClock()
    private let obstacles = Obstacles()
    private let callbacks = Callbacks()
    private let server: ScenarioServer
    private let provider: ScenarioProvider?
    private var folder = TemporaryFolder()
    private var cable: Cable
    private var device: any Device
    private var flush: Task<FlushResult, Never>?
    /// Number of events named by a number.
    private var numbered = 0

    init(_ scenario: Scenario) throws {
        self.scenario = scenario
        server = ScenarioServer(scenario, clock: clock, obstacles: obstacles)
        provider = scenario.provider.map { [clock, obstacles] answers in
            ScenarioProvider(answers, clock: clock, obstacles: obstacles)
        }
        cable = Cable(server)
        device = try DeviceDependencies(
            scenario: scenario, directory: folder.url, clock: clock, cable: cable, provider: provider,
            callbacks: callbacks
        ).makeDevice()
    }

    /// Closes a client that makes requests without end, so that its next step fails.
    private func watch() {
        server.onOverrun { [pipeline = device.pipeline] in Task { await pipeline.close() } }
    }

    func run() async throws {
        watch()
        var failure: (any Error)?
        do {
            await rest()
            for (index, step) in scenario.steps.enumerated() {
                do {
                    try await perform(step)
                } catch {
                    throw Scenario.Failure("step \(index + 1): \(error)")
                }
                await rest()
            }
            if server.overlaps > 0 { throw Scenario.Failure("two requests at the same time") }
        } catch {
            failure = error
        }
        obstacles.release(at: .infinity, isOver: true)
        cable.cut()
        await device.close()
        if let failure { throw failure }
    }

    // MARK: Steps

    private static let verbs = [
        "record", "flush", "begin_flush", "end_flush", "wait", "start_session", "background", "foreground",
        "restart", "kill", "requeue", "delete_quarantined", "server", "provider", "device_clock", "expect",
        "change_user", "set_token", "log_out", "wipe", "opt_out", "opt_in", "hand_over", "forget_tokens",
        "identify", "anonymize", "ask",
    ]

    private func perform(_ step: JSONObject) async throws {
        let named = Self.verbs.filter { step[$0] != nil }
        guard named.count == 1, let verb = named.first, let value = step[verb] else {
            throw Scenario.Failure("a step must have exactly one known verb")
        }
        switch verb {
        case "record" where step["refused"] == .bool(true):
            if (try? await record(value, bytes: 0)) != nil { throw Scenario.Failure("an event was recorded") }
        case "record": try await record(value, bytes: Int(step["bytes"]?.double ?? 0))
        case "flush": try check(await device.pipeline.engine.flush(), value)
        case "begin_flush": flush = Task { [pipeline = device.pipeline] in await pipeline.engine.flush() }
        case "end_flush":
            guard let flush else { throw Scenario.Failure("no flush has begun") }
            try check(await flush.value, value)
        case "wait": await wait(value.double ?? 0)
        case "start_session": device.pipeline.startSession()
        case "background": device.pipeline.enterBackground()
        case "foreground": device.pipeline.enterForeground()
        case "restart", "kill":
            try await restart(isKilled: verb == "kill", configuration: value.object ?? [:])
        case "requeue":
            try check(.integer(Int64(try await device.pipeline.requeueQuarantined())), value, verb)
        case "delete_quarantined":
            try check(.integer(Int64(try await device.pipeline.deleteQuarantined())), value, verb)
        case "server": server.answer(by: value.array ?? [])
        case "provider": provider?.answer(from: value.array ?? [])
        case "device_clock": clock.jump(by: value.double ?? 0)
        case "expect": try await expect(value.object ?? [:])
        default: try await device.perform(verb, value, step)
        }
    }

    private func record(_ what: JSONValue, bytes: Int) async throws {
        var names = what.array?.compactMap(\.string) ?? []
        if let count = what.double {
            names = (0..<Int(count)).map { "\(numbered + $0 + 1)" }
            numbered += names.count
        }
        for name in names { try await device.record(name, bytes: bytes) }
    }

    /// Restarts the client with its files, after a close or after a kill during its work.
    private func restart(isKilled: Bool, configuration: JSONObject) async throws {
        if isKilled {
            cable.cut()
            let copy = TemporaryFolder()
            try copyRunning(folder.url, to: copy.url)
            obstacles.release(at: .infinity)
            try forgetLease(in: copy.url)
            await device.close()
            folder = copy
        } else {
            await device.close()
        }
        flush = nil
        scenario.configuration.merge(configuration) { _, new in new }
        cable = Cable(server)
        device = try dependencies.makeDevice()
        watch()
    }

    private var dependencies: DeviceDependencies {
        DeviceDependencies(
            scenario: scenario, directory: folder.url, clock: clock, cable: cable, provider: provider,
            callbacks: callbacks)
    }

    /// Deletes the leases of the killed process, because the test's own process is still alive.
    private func forgetLease(in directory: URL) throws {
        let files = FileManager.default.enumerator(at: directory, includingPropertiesForKeys: nil)
        for case let file as URL in files ?? .init() where file.lastPathComponent == "queue.sqlite" {
            try EventQueue(path: file.path, limits: QueueLimits(), clock: clock)
                .releaseLease(of: device.pipeline.storage.holder)
        }
    }

    // MARK: Time

    /// Waits until the client has no work now. Returns the uptime of its next work; nil if none or blocked.
    @discardableResult
    private func rest() async -> TimeInterval? {
        let pipeline = device.pipeline
        await pipeline.recorder.drain()
        await withCheckedContinuation { continuation in pipeline.storage.submit { _ in continuation.resume() }
        }
        if obstacles.present == nil {
            let (rests, continuation) = AsyncStream.makeStream(of: Rest.self)
            obstacles.watch { continuation.yield(.blocked) }
            Task { continuation.yield(.idle(until: await pipeline.engine.idle())) }
            for await rest in rests {
                if case .idle(let instant) = rest { return instant }
                break
            }
        }
        if obstacles.present == .provider {
            for _ in 0..<Self.turns { await pipeline.engine.perform { [] } }
        }
        return nil
    }

    private func wait(_ seconds: TimeInterval) async {
        let end = clock.uptime + seconds
        var next = await rest()
        while true {
            // While a call is unanswered, a client may have other work, so the clock advances by at most a second.
            if obstacles.present != nil { next = min(obstacles.next ?? end, clock.uptime + 1) }
            guard let instant = next, instant < end else { break }
            clock.advance(to: instant)
            obstacles.release(at: instant)
            next = await rest()
        }
        clock.advance(to: end)
        obstacles.release(at: end)
        await rest()
    }

    // MARK: Expectations

    private func check(_ observed: JSONValue, _ expected: JSONValue, _ name: String) throws {
        if expected == .bool(true) { return }
        if let difference = Matching.difference(expected, observed, at: name) {
            throw Scenario.Failure(difference)
        }
    }

    private func check(_ result: FlushResult, _ expected: JSONValue) throws {
        let batches = result.batches.map { batch -> JSONValue in
            [
                "user": batch.userID.map { .string($0) } ?? .null,
                "count": .integer(Int64(batch.eventCount)), "outcome": .string(batch.outcome.rawValue),
                "delivered": .integer(Int64(batch.deliveredCount)), "code": .string(batch.code),
            ]
        }
        let observed: JSONValue = [
            "ending": .string(result.ending.rawValue), "queued": .integer(Int64(result.queued)),
            "delivered": .integer(Int64(result.delivered)), "batches": .array(batches),
        ]
        try check(observed, expected, "flush")
    }

    private func expect(_ expected: JSONObject) async throws {
        var observed = await device.observe()
        let names = Set(expected.keys)
        if !names.isDisjoint(with: ["requests", "request_count", "request_times", "request_sizes"]) {
            let requests = server.takeRequests()
            observed["requests"] = .array(requests)
            observed["request_count"] = .integer(Int64(requests.count))
            observed["request_times"] = .array(requests.map { $0["at"] ?? .null })
            observed["request_sizes"] = .array(requests.map { $0["count"] ?? .null })
        }
        if names.contains("callbacks") { observed["callbacks"] = callbacks.take() }
        if names.contains("provider_calls") { observed["provider_calls"] = provider?.takeCalls() }
        observed["delivered"] = server.delivered
        observed["delivered_count"] = .integer(Int64(server.delivered.array?.count ?? 0))
        observed["duplicates"] = .integer(Int64(server.duplicates))
        observed.merge(await device.pipeline.observed()) { _, new in new }
        try check(.object(observed), .object(expected), "")
    }
}

extension DeliveryPipeline {
    /// The values that a scenario can check in every mode.
    fileprivate func observed() async -> JSONObject {
        func count(_ number: Int) -> JSONValue { .integer(Int64(number)) }
        let snapshot = await snapshot()
        let quarantined = (try? await self.quarantined()) ?? []
        let parked = snapshot.parked.map { user -> JSONValue in
            [
                "user": user.userID.map { .string($0) } ?? .null, "reason": .string(user.reason),
                "failures": count(user.failures), "is_paused": .bool(user.isPaused),
                "next_attempt_in": user.nextAttemptIn.map { .number($0) } ?? .null,
            ]
        }
        return [
            "queued": count(snapshot.queued), "recorded": count(snapshot.recorded),
            "sent": count(snapshot.sent), "wiped": count(snapshot.wiped),
            "evicted": count(snapshot.evictedByCount), "parked": .array(parked),
            "quarantined": .array(quarantined.map { .string($0.name) }),
            "quarantine_codes": .array(quarantined.map { .string($0.code) }),
            "is_stopped": .bool(snapshot.configurationProblem != nil),
            "is_failing": .bool(snapshot.lastError != nil),
            "next_attempt_in": snapshot.nextAttemptIn.map { .number($0) } ?? .null,
            "authentication_failures": count(snapshot.authenticationFailures),
            "clock_offset": .number(snapshot.clockOffset),
        ]
    }
}

extension QuarantinedEvent {
    /// The event's name in the scenario.
    fileprivate var name: String {
        guard let body = JSONDocument.value(body) else { return "" }
        let event = body["body"] ?? body
        return ["event", "uuid", "event_type", "type"].lazy.compactMap { event[$0]?.string }.first ?? ""
    }
}
