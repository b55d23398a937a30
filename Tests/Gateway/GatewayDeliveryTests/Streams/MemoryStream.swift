import CountersignCore
import CountersignJSON
import Foundation
import GatewayModel
import GatewayObservability
import GatewayTestSupport
import Testing

@testable import CountersignGatewayTesting
@testable import GatewayDelivery
@testable import GatewayStorage

/// A JetStream-like server with one stream. It rejects out-of-order messages and accepts lost messages again.
final class MemoryStream: @unchecked Sendable {
    struct Message {
        var sequence: Int64
        var subject: String
        var headers: [String: String]
        var body: String
    }

    /// Accessed by the test's thread only, like the connections.
    var messages: [Message] = []
    var last: Int64 = 0
    var config: JSONObject?
    var isAway = false
    /// The number of next messages to store without an acknowledgement.
    var unanswered = 0
    /// The number of next messages to lose in transit.
    var lost = 0
    /// Acknowledgements are withheld while this is true.
    var isSilent = false
    var refusal: String?
    /// The id of the only event that `refusal` rejects; nil rejects all events.
    var refused: String?
    /// Acknowledges each message as a duplicate without storing it.
    var saysDuplicate = false
    var connections = 0
    var mostUnderWay = 0
    /// The number of messages that requested an acknowledgement.
    var asked = 0
    /// The relay's clock in milliseconds. A wait that times out advances it.
    let clock = Lock<Int64>(1_000)

    func connect() throws(StreamError) -> any StreamConnection {
        if isAway { throw StreamError(.cannotConnect, "away") }
        connections += 1
        return Connection(self)
    }

    var positions: [String] { messages.compactMap { $0.headers["Countersign-Message-Id"] } }

    /// Simulates a server crash that loses unwritten messages.
    func loseTail(_ count: Int) {
        messages.removeLast(count)
        last = messages.last?.sequence ?? 0
    }

    private final class Connection: StreamConnection {
        let stream: MemoryStream
        /// Acknowledgements with the number of messages published before each.
        var answers: [(StreamAnswer, messages: Int)] = []
        var published = 0
        var answered = 0
        var isOpen = true

        init(_ stream: MemoryStream) { self.stream = stream }

        func request(_ subject: String, _ body: [UInt8]) throws(StreamError) -> [UInt8] {
            if stream.isAway { throw StreamError(.connection, "away") }
            let answer: JSONValue
            switch subject.split(separator: ".").dropLast().last {
            case "CREATE":
                stream.config = try? StrictJSONParser(maximumBytes: 1 << 16).parse(bytes: body) {
                    $0.value.members ?? [:]
                }
                answer = stream.info
            case "INFO":
                answer = stream.config == nil ? Self.error(10_059, "stream not found") : stream.info
            default:
                guard let message = stream.messages.last else {
                    return Self.error(10_037, "no message found").bytes
                }
                let header =
                    "NATS/1.0\r\n" + message.headers.map { "\($0): \($1)\r\n" }.joined() + "\r\n"
                answer = [
                    "message": [
                        "seq": .integer(message.sequence),
                        "hdrs": .string(Data(header.utf8).base64EncodedString()),
                    ]
                ]
            }
            return answer.bytes
        }

        func publish(_ message: StreamMessage, number: UInt64?) throws(StreamError) {
            if stream.isAway { throw StreamError(.connection, "away") }
            published += 1
            stream.mostUnderWay = max(stream.mostUnderWay, published - answered)
            if stream.lost > 0 {
                stream.lost -= 1
                return
            }
            let headers = Dictionary(message.headers.map { ($0.name, $0.value) }) { $1 }
            let answer: JSONValue
            if let refusal = stream.refusal,
                [nil, headers["Countersign-Message-Id"]].contains(stream.refused)
            {
                answer = Self.error(10_077, refusal)
            } else if stream.saysDuplicate {
                answer = ["stream": "E", "seq": .integer(stream.last), "duplicate": true]
            } else if headers["Nats-Expected-Last-Sequence"] != String(stream.last) {
                answer = Self.error(10_071, "wrong last sequence: \(stream.last)")
            } else {
                stream.last += 1
                stream.messages.append(
                    Message(
                        sequence: stream.last, subject: message.subject, headers: headers,
                        body: String(decoding: message.body, as: UTF8.self)))
                answer = ["stream": "E", "seq": .integer(stream.last)]
                if stream.unanswered > 0 {
                    stream.unanswered -= 1
                    return
                }
            }
            guard let number else { return }
            stream.asked += 1
            answers.append((StreamAnswer(number: number, body: answer.bytes), published))
        }

        func answer(withinMilliseconds milliseconds: Int) throws(StreamError) -> StreamAnswer? {
            if stream.isAway { throw StreamError(.connection, "away") }
            if stream.isSilent || answers.isEmpty {
                stream.clock.withLock { $0 += Int64(milliseconds) }
                return nil
            }
            let (answer, messages) = answers.removeFirst()
            answered = messages
            return answer
        }

        func close() { isOpen = false }

        static func error(_ code: Int64, _ text: String) -> JSONValue {
            ["error": ["code": 400, "err_code": .integer(code), "description": .string(text)]]
        }
    }

    private var info: JSONValue {
        [
            "config": .object(config ?? [:]),
            "state": ["last_seq": .integer(last), "messages": .integer(Int64(messages.count))],
        ]
    }
}

/// Stored events, an in-memory stream, and relays between them.
final class StreamBench {
    let place: TestPlace
    let storage: any Storage
    let events: any EventStore
    let directory: AppDirectory
    let stream = MemoryStream()
    /// Milliseconds since 1970.
    let now = Lock<Int64>(1_800_000_000_000)

    init() throws {
        place = try TestPlace()
        storage = try place.open()
        directory = try storage.openControl(as: .account)
        _ = try directory.createApp(id: "shop")
        events = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 24))
    }

    deinit { events.close() }

    private var count = 0

    func store(_ more: Int) throws {
        let batch = (0..<more).map { StorageConformance.event("m-\(count + $0)", user: "ada") }
        count += more
        _ = try StorageConformance.append(
            batch, receivedMilliseconds: now.withLock { $0 }, to: events)
        try place.settle()
    }

    /// Whether a position is between the last event and the log's head.
    func isAtEnd(_ sequence: Int64) throws -> Bool {
        let last = try storage.log.newest(EventQuery(appID: "shop"), before: nil, limit: 1).events.first
        return try (last?.sequence ?? 0)...storage.log.positions().head ~= sequence
    }

    /// The ids of all events, in the order of storing.
    var stored: [String] { (0..<count).map { "m-\($0)" } }

    func create(_ members: JSONObject = [:]) throws -> StreamSettings {
        try directory.streams.create(
            "out", of: "shop",
            members.merging(["servers": "nats://n.example:4222", "stream": "E"]) { a, _ in a },
            after: 0, at: now.withLock { $0 })
    }

    /// One publisher of a stream, without a runner.
    final class Publisher {
        private let bench: StreamBench
        private let way: StreamWay
        private let route: DeliveryRoute
        var follower: Follower

        init(_ bench: StreamBench, _ settings: StreamSettings, _ progress: DeliveryProgress?) {
            self.bench = bench
            let (stream, clock) = (bench.stream, bench.stream.clock)
            way = StreamWay(
                settings, connect: { _ throws(StreamError) in try stream.connect() },
                clock: { clock.withLock { $0 } },
                run: { $0() })
            var route = DeliveryRoute(settings.consumer)
            (route.start, route.epoch) = (settings.startSequence, settings.epoch)
            self.route = route
            follower = Follower(
                route, progress ?? DeliveryProgress(committed: 0), retry: Retry(first: 1, most: 30),
                probeMilliseconds: 10_000)
        }

        var progress: DeliveryProgress { follower.progress }

        /// Delivers once. Returns false if there is nothing to do.
        func step() throws -> Bool {
            let now = bench.now.withLock { $0 }
            guard let work = follower.next(atMilliseconds: now) else { return false }
            var batch = DeliveryBatch(appID: "shop", progress: follower.progress) { _, _ in "" }
            batch.positions = try bench.storage.log.positions()
            if work.isProbe {
                batch.kind = .probe
            } else {
                let page = try bench.storage.log.follow(
                    EventFollowing(appID: "shop"), after: work.after, limit: work.limit)
                (batch.events, batch.reached) = (page.events, page.reached)
                if page.events.isEmpty {
                    _ = follower.ended(
                        .nothing(through: page.reached, hasMore: page.hasMore, gap: page.gap),
                        atMilliseconds: now, fraction: 1)
                    return true
                }
            }
            let answer = Lock<DeliveryAnswer?>(nil)
            way.accept(batch) { given in answer.withLock { $0 = given } }
            let given = try #require(answer.withLock { $0 })
            _ = follower.ended(
                .answer(given, events: batch.events.count), atMilliseconds: now, fraction: 1)
            guard case .retry(let failure, _) = given else { return true }
            throw StreamError(StreamError.Code(rawValue: failure.code) ?? .storage, failure.reason)
        }
    }

    func relay(_ settings: StreamSettings, _ progress: DeliveryProgress? = nil) throws -> Publisher {
        Publisher(self, settings, progress)
    }

    /// Delivers until there is nothing to do. Any back-off has ended.
    func run(_ publisher: Publisher) throws {
        pass(60_000)
        publisher.follower.wake()
        for _ in 0..<10_000 where try !publisher.step() { return }
        Issue.record("the publisher never comes to rest")
    }

    let pool = ManualPool()

    func runner() throws -> DeliveryRunner {
        let (clock, now) = (stream.clock, now)
        return DeliveryRunner(
            [
                Streams(
                    try storage.openControl(as: .schedule), earlier: try storage.openEarlierStreams(),
                    clock: { clock.withLock { $0 } }, run: { { $0() } },
                    connect: { [stream] _ throws(StreamError) in try stream.connect() })
            ],
            DeliveryRunner.Environment(
                directory: try storage.openControl(as: .schedule), events: storage.log,
                consumers: consumers, arrivals: events.arrivals, log: GatewayLog(level: .off),
                pool: { [pool] work in pool.add(work) },
                now: { Date(timeIntervalSince1970: Double(now.withLock { $0 }) / 1_000) }, fraction: { 1 }))
    }

    var consumers: any EventConsumers {
        storage.openConsumers(with: events, now: { [now] in now.withLock { $0 } })
    }

    func pass(_ milliseconds: Int64) {
        now.withLock { $0 += milliseconds }
        stream.clock.withLock { $0 += milliseconds }
    }
}
