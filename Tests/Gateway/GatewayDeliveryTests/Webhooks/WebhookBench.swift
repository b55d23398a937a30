import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayDelivery
import GatewayHTTP
import GatewayModel
import GatewayObservability
import GatewayStorage

/// In-memory events and the committed position of each endpoint.
final class ListedEvents: WebhookEvents {
    struct State {
        var events: [StoredEvent] = []
        var committed: [String: Int64] = [:]
        /// Makes reads of positions fail.
        var isBroken = false
        /// The sequence number of the last event that retention has deleted.
        var floor: Int64 = 0
        /// Sequence numbers of events that filters exclude.
        var leftOut: Set<Int64> = []
    }

    let state = Lock(State())

    func add(_ count: Int, bytes: Int = 2) {
        state.withLock { state in
            for _ in 0..<count {
                let sequence = Int64(state.events.count + 1)
                let body = #"{"n":\#(sequence),"s":"\#(String(repeating: "x", count: bytes))"}"#
                state.events.append(
                    StoredEvent(
                        sequence: sequence, messageID: "m-\(sequence)", type: "track", userID: "u",
                        anonymousID: nil, name: sequence % 2 == 0 ? "even" : "odd", timestampMilliseconds: 1,
                        receivedMilliseconds: 1,
                        proof: nil, body: Array(body.utf8)))
            }
        }
    }

    func committed(of endpoint: WebhookEndpoint) throws -> Int64 {
        try state.withLock { state in
            if state.isBroken { throw GatewayError(.storage, "planned") }
            return state.committed[endpoint.id] ?? endpoint.startSequence
        }
    }

    func commit(_ sequence: Int64, isAfterGap: Bool, of endpoint: WebhookEndpoint) {
        state.withLock { $0.committed[endpoint.id] = sequence }
    }

    func read(
        for endpoint: WebhookEndpoint, after sequence: Int64, through: Int64?, isReplay: Bool,
        isAfterGap: Bool
    ) -> WebhookReading {
        let (all, floor, leftOut) = state.withLock { ($0.events, $0.floor, $0.leftOut) }
        let wanted = all.dropFirst(Int(sequence)).filter {
            $0.sequence > floor && !leftOut.contains($0.sequence)
                && (endpoint.name == nil || endpoint.name == $0.name)
        }
        let found = Array(wanted.prefix(endpoint.batchSize))
        return WebhookReading(
            found, of: endpoint.appID, isReplay: isReplay,
            reached: found.last?.sequence ?? max(sequence, Int64(all.count)),
            hasMore: found.last.map { $0.sequence < Int64(all.count) } ?? false,
            hasMissed: isAfterGap || floor > sequence && sequence > 0, through: through
        ) { "p\($0)" }
    }
}

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

    let place: TestPlace
    let directory: AppDirectory
    let events: ListedEvents
    let store: DeliveryStore
    let runner: WebhookRunner
    let now: Lock<Int64>
    let sent = Lock<[Sent]>([])
    /// Answers each delivery.
    let answer: Lock<@Sendable (Sent) -> WebhookAttempt>

    init(
        _ place: TestPlace? = nil, events: ListedEvents = ListedEvents(),
        at milliseconds: Int64 = 1_800_000_000_000
    ) throws {
        self.place = try place ?? TestPlace()
        self.events = events
        let storage = try self.place.open()
        directory = try storage.openControl(as: .account)
        if try directory.apps().isEmpty { _ = try directory.createApp(id: "shop") }
        store = try storage.openDeliveries()
        let now = Lock(milliseconds)
        self.now = now
        let answer = Lock<@Sendable (Sent) -> WebhookAttempt>({ _ in WebhookAttempt(status: 200) })
        self.answer = answer
        runner = WebhookRunner(
            directory: try storage.openControl(as: .schedule), events: events, store: store,
            log: GatewayLog(level: .off),
            now: { Date(timeIntervalSince1970: Double(now.withLock { $0 }) / 1_000) },
            random: { 1 }
        ) { [sent] body, messageID, endpoint, _ in
            let text = String(decoding: body, as: UTF8.self)
            let json = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
            let numbers = (json?["events"] as? [[String: Any]] ?? []).compactMap { $0["seq"] as? Int64 }
            let delivery = Sent(
                endpoint: endpoint.id, messageID: messageID,
                events: numbers,
                isReplay: text.contains(#""replay":true"#), isTest: text == #"{"type":"test"}"#,
                isAfterGap: json?["events_missed"] as? Bool == true,
                committed: (try? events.committed(of: endpoint)) ?? -1)
            sent.withLock { $0.append(delivery) }
            return answer.withLock { $0 }(delivery)
        }
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
        runner.waitUntilIdle()
    }

    func deliveries(of endpoint: WebhookEndpoint) throws -> [DeliveryRecord] {
        try place.open().deliveries.deliveries(
            of: endpoint.id, before: nil, limit: 500)
    }

    func fail(_ status: Int) {
        answer.withLock { $0 = { _ in WebhookAttempt(status: status) } }
    }

    func succeed() {
        answer.withLock { $0 = { _ in WebhookAttempt(status: 204) } }
    }

    deinit { runner.stop(graceSeconds: 10) }
}
