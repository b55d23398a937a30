import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayDelivery
import GatewayHTTP
import GatewayModel
import GatewayObservability
import GatewayStorage

/// A runner with a manual clock and an in-memory webhook. Its data is deleted with this object.
final class WebhookBench: Sendable {
    struct Sent: Sendable, Equatable {
        var endpoint: String
        var messageID: String
        /// The numbers of its events.
        var events: [Int64]
        var isReplay: Bool
        var isTest: Bool
        var isAfterGap: Bool
        /// The committed position when the delivery was sent.
        var committed: Int64
    }

    let place: TestStorage
    let directory: AppDirectory
    let events: ListedLog
    let attempts: DeliveryStore
    let consumers: any EventConsumers
    let store: any EventStore
    let pool = ManualPool()
    let runner: DeliveryRunner
    let now: Lock<Int64>
    let sent = Lock<[Sent]>([])
    /// Answers each delivery; nil answers with ``release()``.
    let answer: Lock<Answer>
    private let held: Lock<[Held]>

    struct Answer {
        var make: @Sendable (Sent) -> WebhookAttempt?
    }

    private struct Held: Sendable {
        let done: @Sendable (WebhookAttempt) -> Void
    }

    init(
        _ place: TestStorage? = nil, events: ListedLog = ListedLog(),
        at milliseconds: Int64 = 1_800_000_000_000
    ) throws {
        self.place = try place ?? TestStorage()
        self.events = events
        let storage = try self.place.open()
        directory = try storage.openControl(as: .account)
        if try directory.apps().isEmpty { _ = try directory.createApp(id: "shop") }
        attempts = try storage.openDeliveries()
        store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        let now = Lock(milliseconds)
        self.now = now
        let answer = Lock(Answer { _ in WebhookAttempt(status: 200) })
        self.answer = answer
        let held = Lock<[Held]>([])
        self.held = held
        let consumers = storage.openConsumers(with: store, now: { now.withLock { $0 } })
        self.consumers = consumers
        let date: @Sendable () -> Date = {
            Date(timeIntervalSince1970: Double(now.withLock { $0 }) / 1_000)
        }
        let webhooks = Webhooks(
            try storage.openControl(as: .schedule), attempts, now: date
        ) { [sent] body, messageID, endpoint, _, done in
            let text = String(decoding: body, as: UTF8.self)
            let json = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
            let numbers = (json?["events"] as? [[String: Any]] ?? []).compactMap {
                ($0["message_id"] as? String).flatMap { Int64($0) }
            }
            let delivery = Sent(
                endpoint: endpoint.id, messageID: messageID,
                events: numbers,
                isReplay: text.contains(#""replay":true"#), isTest: text == #"{"type":"test"}"#,
                isAfterGap: json?["events_missed"] as? Bool == true,
                committed: (try? consumers.progress(.webhook)[endpoint.consumer]?.committed) ?? -1)
            sent.withLock { $0.append(delivery) }
            if let attempt = answer.withLock({ $0 }).make(delivery) {
                done(attempt)
            } else {
                held.withLock { $0.append(Held(done: done)) }
            }
        }
        runner = DeliveryRunner(
            [webhooks],
            DeliveryRunner.Environment(
                directory: try storage.openControl(as: .schedule), events: events, consumers: consumers,
                arrivals: store.arrivals, log: GatewayLog(level: .off),
                pool: { [pool] work in pool.add(work) }, now: date, fraction: { 1 }))
    }

    /// Makes an endpoint that begins with the first event.
    func endpoint(_ members: JSONObject = [:]) throws -> WebhookEndpoint {
        try directory.webhooks.create(
            of: "shop", members.merging(["url": "https://shop.example/in"]) { one, _ in one }, secret: nil,
            after: 0, at: now.withLock { $0 }
        ).endpoint
    }

    /// Advances the clock and waits until all due deliveries are done.
    func look(after milliseconds: Int64 = 0) {
        now.withLock { $0 += milliseconds }
        runner.look()
        pool.drain()
        // Stores positions that only skipped events.
        runner.look()
    }

    /// Signals new events, and does the work that is due.
    func wake() {
        runner.wake()
        look()
    }

    /// Answers all deliveries that wait.
    func release() {
        let waiting = held.withLock { held in
            defer { held = [] }
            return held
        }
        for delivery in waiting { delivery.done(WebhookAttempt(status: 200)) }
        look()
    }

    func progress(_ endpoint: WebhookEndpoint) throws -> DeliveryProgress? {
        try consumers.progress(.webhook)[endpoint.consumer]
    }

    func committed(_ endpoint: WebhookEndpoint) throws -> Int64? { try progress(endpoint)?.committed }

    /// Ends the runner, so that another bench can continue.
    func stop() {
        runner.stop(graceSeconds: 0)
        store.close()
    }

    func deliveries(of endpoint: WebhookEndpoint) throws -> [DeliveryRecord] {
        try place.open().deliveries.deliveries(
            of: endpoint.id, before: nil, limit: 500)
    }

    func fail(_ status: Int) {
        answer.withLock { $0.make = { _ in WebhookAttempt(status: status) } }
    }

    func succeed() {
        answer.withLock { $0.make = { _ in WebhookAttempt(status: 204) } }
    }

    deinit { store.close() }
}
