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
    /// Called after each wait without an acknowledgement.
    var onWait: () -> Void = {}
    var rejection: String?
    /// The id of the only event that `rejection` rejects; nil rejects all events.
    var rejected: String?
    /// Acknowledges each message as a duplicate without storing it.
    var repliesDuplicate = false
    var connections = 0
    var mostUnderWay = 0
    /// The number of messages that requested an acknowledgement.
    var asked = 0
    /// The publisher's clock in milliseconds. A wait that times out advances it.
    let clock = Lock<Int64>(1_000)

    func connect() throws(StreamError) -> any StreamConnection {
        if isAway { throw StreamError(.cannotConnect, "away") }
        connections += 1
        return Connection(self)
    }

    /// The message ids of the stored events.
    var positions: [String] { messages.compactMap { $0.headers["Countersign-Message-Id"] } }

    /// Simulates a server crash that loses unwritten messages.
    func loseTail(_ count: Int) {
        messages.removeLast(count)
        last = messages.last?.sequence ?? 0
    }

    private final class Connection: StreamConnection {
        let stream: MemoryStream
        /// Acknowledgements with the number of messages published up to each.
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
            if let rejection = stream.rejection,
                [nil, headers["Countersign-Message-Id"]].contains(stream.rejected)
            {
                answer = Self.error(10_077, rejection)
            } else if stream.repliesDuplicate {
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
                stream.onWait()
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

/// Stored events, an in-memory stream, and publishers between them.
final class StreamBench {
    let place: TestStorage
    let storage: any Storage
    let events: any EventStore
    let directory: AppDirectory
    let stream = MemoryStream()
    /// Milliseconds since 1970.
    let now = Lock<Int64>(1_800_000_000_000)

    init() throws {
        place = try TestStorage()
        storage = try place.open()
        directory = try storage.openControl(as: .account)
        _ = try directory.createApp(id: "shop")
        events = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 24))
    }

    deinit { events.close() }

    private var count = 0

    func store(_ more: Int, proof: EventProof? = nil) throws {
        let batch = (0..<more).map { StorageConformance.event("m-\(count + $0)", user: "ada") }
        count += more
        _ = try StorageConformance.append(
            batch, receivedMilliseconds: now.withLock { $0 }, proof: proof, to: events)
        try place.waitForTransactions()
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

    /// A runner of one stream with fixed settings, like a gateway that has not read newer ones.
    final class Publisher {
        private let bench: StreamBench
        private let id: EventConsumerID
        let runner: DeliveryRunner
        let pool = ManualPool()

        /// Continues after `progress`, or begins at the stream's start.
        init(_ bench: StreamBench, _ settings: StreamSettings, _ progress: DeliveryProgress?) throws {
            self.bench = bench
            id = settings.consumer
            try? bench.consumers.delete(id)
            if let progress { try bench.consumers.follow(id, holdDays: nil, from: progress) }
            runner = try bench.makeRunner(FixedStream(streams: try bench.streams(), settings: settings), pool)
        }

        var progress: DeliveryProgress {
            get throws { try #require(try bench.consumers.progress(.stream)[id]) }
        }

        /// Delivers one batch, or reads the stream's state.
        func step() {
            runner.wake()
            runner.check()
            pool.drain(2)
        }
    }

    private struct FixedStream: WayKind {
        let streams: Streams
        let settings: StreamSettings

        var kind: EventConsumerID.Kind { streams.kind }
        var retry: Retry { streams.retry }
        var probeMilliseconds: Int64? { streams.probeMilliseconds }
        func routes() -> [DeliveryRoute] { [Streams.route(to: settings)] }
        func open(_ id: EventConsumerID) -> any Way { streams.open(id) }
    }

    func publisher(_ settings: StreamSettings, _ progress: DeliveryProgress? = nil) throws -> Publisher {
        try Publisher(self, settings, progress)
    }

    /// Ends any back-off and delivers until there is nothing to do. Throws the failure if delivery ends with one.
    func run(_ publisher: Publisher) throws {
        pass(60_000)
        publisher.runner.wake()
        publisher.runner.check()
        publisher.pool.drain()
        publisher.runner.check()
        let progress = try publisher.progress
        guard progress.failures > 0, let failure = progress.failure else { return }
        throw StreamError(StreamError.Code(rawValue: failure.code) ?? .storage, failure.reason)
    }

    let pool = ManualPool()

    func runner() throws -> DeliveryRunner { try makeRunner(try streams(), pool) }

    private func streams() throws -> Streams {
        let clock = stream.clock
        return Streams(
            try storage.openControl(as: .schedule), earlier: try storage.openEarlierStreams(),
            clock: { clock.withLock { $0 } }, run: { { $0() } },
            connect: { [stream] _ throws(StreamError) in try stream.connect() })
    }

    private func makeRunner(_ kind: any WayKind, _ pool: ManualPool) throws -> DeliveryRunner {
        let now = now
        return DeliveryRunner(
            [kind], directory: try storage.openControl(as: .schedule), events: storage.log,
            consumers: consumers, arrivals: events.arrivals, log: GatewayLog(level: .off),
            pool: { work in pool.add(work) },
            now: { Date(timeIntervalSince1970: Double(now.withLock { $0 }) / 1_000) }, fraction: { 1 })
    }

    var consumers: any EventConsumers {
        storage.openConsumers(with: events, now: { [now] in now.withLock { $0 } })
    }

    func pass(_ milliseconds: Int64) {
        now.withLock { $0 += milliseconds }
        stream.clock.withLock { $0 += milliseconds }
    }
}
