import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayDelivery
import GatewayHTTP
import GatewayModel
import GatewayObservability
import GatewayStorage
import TestSupport
import Testing

/// The kinds of delivery that the conformance suite tests.
enum WayCase: String, CaseIterable {
    case webhook, stream, file
    /// ``AppendingFiles``. Its consumers have the kind of the hourly files.
    case sample
    /// A client that reads over HTTP. It decides itself when to read, so the runner takes no part.
    case pull

    /// The kinds of delivery that a gateway runs.
    static let run: [WayCase] = [.webhook, .stream, .file, .sample]

    /// Test arguments: all kinds with false, and all except `way` with true.
    static func flagged(exceptTrue way: WayCase) -> [(WayCase, Bool)] {
        allCases.map { ($0, false) } + allCases.filter { $0 != way }.map { ($0, true) }
    }

    var kind: EventConsumerID.Kind {
        switch self {
        case .pull: .pull
        case .webhook: .webhook
        case .stream: .stream
        case .file, .sample: .file
        }
    }

    /// The word in logs and alerts.
    var noun: String {
        switch self {
        case .pull: "consumer"
        case .webhook, .stream: rawValue
        case .file, .sample: "files"
        }
    }
}

/// A receiver that outlives the runners, as a real receiver outlives a gateway's restarts.
final class BenchReceiver: Sendable {
    let stream = MemoryStream()
    let isAway = Lock(false)
    /// The requests to webhooks, accepted or not.
    let requests = Lock<[WebhookRequest]>([])
    /// The ids of the events in accepted requests to webhooks.
    let webhooks = Lock<[String]>([])
    /// The result of a request to a webhook; nil leaves the request open until ``DeliveryBench/release()``.
    let answer = Lock(Answer { _ in WebhookAttempt(status: 200) })
    let held = Lock<[Held]>([])
    let logged = Lock("")
    /// The ids of the events that a client has processed, and whether its last lease reports a gap.
    let pulled = Lock<(ids: [String], reportsGap: Bool)>(([], false))
    /// The file of `.sample`, or the folder of the hourly files.
    let path = Lock("")

    struct Answer {
        var make: @Sendable (WebhookRequest) -> WebhookAttempt?
    }

    struct Held: Sendable {
        let done: @Sendable (WebhookAttempt) -> Void
    }

    func receive(_ request: WebhookRequest, _ done: @escaping @Sendable (WebhookAttempt) -> Void) {
        requests.withLock { $0.append(request) }
        guard !isAway.withLock({ $0 }) else { return done(WebhookAttempt(status: 503)) }
        guard let attempt = answer.withLock({ $0 }).make(request) else {
            return held.withLock { $0.append(Held(done: done)) }
        }
        if attempt.error == nil { webhooks.withLock { $0 += request.events.map(String.init) } }
        done(attempt)
    }
}

/// A runner with one kind of delivery, a manual clock and an event log in memory.
final class DeliveryBench {
    let way: WayCase
    let place: TestStorage
    let storage: any Storage
    let directory: AppDirectory
    let consumers: any EventConsumers
    let store: any EventStore
    let log: ListedLog
    let gatewayLog: GatewayLog
    let receiver: BenchReceiver
    let now: Lock<Int64>
    let pool = ManualPool()
    let runner: DeliveryRunner
    let hasDuty = Lock(true)
    private let route: Lock<DeliveryRoute?>

    /// A bench that continues after another one has ended, on the same data.
    convenience init(after other: DeliveryBench) throws {
        other.store.close()
        try self.init(
            other.way, other.place, log: other.log, receiver: other.receiver,
            at: other.now.withLock { $0 }, route: other.route)
    }

    init(
        _ way: WayCase, _ place: TestStorage? = nil, log: ListedLog = ListedLog(),
        receiver: BenchReceiver = BenchReceiver(), at milliseconds: Int64 = 1_800_000_000_000,
        route: Lock<DeliveryRoute?>? = nil
    ) throws {
        self.way = way
        self.log = log
        self.receiver = receiver
        self.place = try place ?? TestStorage()
        storage = try self.place.open()
        directory = try storage.openControl(as: .account)
        if try directory.apps().isEmpty { _ = try directory.createApp(id: "shop") }
        let now = Lock(milliseconds)
        self.now = now
        store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        let stored = storage.openConsumers(with: store, now: { now.withLock { $0 } })
        consumers = try #require(stored as? any ConsumersOfAnyEngine).reading(log)
        var file = DeliveryRoute(EventConsumerID(appID: "shop", kind: .file, name: "lines"))
        file.batchSize = 4
        let path = self.place.folder + (way == .file ? "/files" : "/lines.txt")
        receiver.path.withLock { $0 = path }
        self.route = route ?? Lock(file)
        gatewayLog = GatewayLog(
            level: .error,
            write: { text in receiver.logged.withLock { $0 += String(decoding: text, as: UTF8.self) } })
        runner = try Self.makeRunner(
            way, path, self.route, receiver: receiver, storage, directory, consumers, store.arrivals, log,
            gatewayLog, pool,
            hasDuty: { [hasDuty] in hasDuty.withLock { $0 } }, now: { now.withLock { $0 } })
    }

    /// The runner of another gateway with the same storage and receiver.
    func rival(hasDuty: @escaping @Sendable () -> Bool) throws -> DeliveryRunner {
        try Self.makeRunner(
            way, receiver.path.withLock { $0 }, route, receiver: receiver, storage, directory, consumers,
            store.arrivals, log, gatewayLog, pool, hasDuty: hasDuty, now: { [now] in now.withLock { $0 } })
    }

    private static func makeRunner(
        _ way: WayCase, _ path: String, _ route: Lock<DeliveryRoute?>, receiver: BenchReceiver,
        _ storage: any Storage, _ directory: AppDirectory, _ consumers: any EventConsumers,
        _ arrivals: EventArrivals, _ log: ListedLog, _ gatewayLog: GatewayLog, _ pool: ManualPool,
        hasDuty: @escaping @Sendable () -> Bool, now: @escaping @Sendable () -> Int64
    ) throws -> DeliveryRunner {
        let date: @Sendable () -> Date = { Date(timeIntervalSince1970: Double(now()) / 1_000) }
        let kind: (any WayKind)? =
            switch way {
            case .pull: nil
            case .webhook:
                Webhooks(directory, try storage.openDeliveries(), now: date, hasDuty: hasDuty) {
                    body, id, endpoint, _, done in
                    receiver.receive(WebhookRequest(body, id, to: endpoint), done)
                }
            case .stream:
                Streams(
                    directory, earlier: try storage.openEarlierStreams(), hasDuty: hasDuty, clock: now,
                    run: { { $0() } },
                    connect: { _ throws(StreamError) in try receiver.stream.connect() })
            case .file:
                EventFiles(
                    directory, folder: path, hasDuty: hasDuty, now: date, run: { $0() }, report: { _ in })
            case .sample: AppendingFiles(file: path, settings: route, hasDuty: hasDuty)
            }
        return DeliveryRunner(
            kind.map { [$0] } ?? [], directory: try storage.openControl(as: .schedule), events: log,
            consumers: consumers, arrivals: arrivals, log: gatewayLog, pool: { work in pool.add(work) },
            now: date, fraction: { 1 })
    }

    deinit {
        store.close()
        gatewayLog.close()
    }

    /// The logged lines with this message. Nothing is logged afterwards.
    func logged(_ message: String) -> [Substring] {
        gatewayLog.close()
        return receiver.logged.withLock { $0.split(separator: "\n").filter { $0.contains(message) } }
    }

    // MARK: Settings

    /// Creates the consumer, which starts before the first event.
    func create(holdDays: Int? = nil, name: String? = nil) throws {
        var hold: JSONObject = holdDays.map { ["hold_days": .integer(Int64($0))] } ?? [:]
        hold["name"] = name.map { .string($0) }
        switch way {
        case .webhook:
            _ = try directory.webhooks.create(
                of: "shop",
                hold.merging(["url": "https://shop.example/in", "batch_size": 4]) { one, _ in one },
                secret: nil, after: 0, at: 0)
        case .stream:
            _ = try directory.streams.create(
                "out", of: "shop",
                hold.merging(["servers": "nats://n.example:4222", "stream": "E"]) { one, _ in one },
                after: 0, at: 1)
        case .pull:
            _ = try consumers.create(
                try id, EventConsumerSettings(filter: EventFilter(name: name), holdDays: holdDays),
                from: .start)
        // Each app has hourly files, and retention never waits for them.
        case .file: break
        case .sample:
            route.withLock {
                $0?.holdDays = holdDays
                $0?.filter.name = name
            }
        }
    }

    private var name: String {
        get throws {
            switch way {
            case .webhook: try directory.webhooks.all().first?.id ?? ""
            case .stream: "out"
            case .file: "hourly"
            case .sample: "lines"
            case .pull: "client"
            }
        }
    }

    func setPause(_ isPaused: Bool) throws {
        let time = now.withLock { $0 }
        switch way {
        case .webhook:
            try directory.webhooks.setPause(
                isPaused ? .init(.requested, by: "lee") : nil, of: try name, of: "shop", at: time)
        case .stream:
            try directory.streams.setPause(isPaused ? .init(by: "lee") : nil, of: "out", of: "shop", at: time)
        case .file:
            var settings = try directory.setting(FileSettings.self, of: "shop")
            settings.pause = isPaused ? WayPause(by: "lee") : nil
            settings.revision += 1
            try directory.set(settings, for: "shop")
        case .sample:
            route.withLock {
                $0?.isPaused = isPaused
                $0?.revision += 1
            }
            // A change of the control database makes the runner read the settings.
            _ = try directory.createApp(id: "change-\(UUIDv7.make().prefix(20))")
        case .pull: break
        }
    }

    /// Delivers the events after a sequence number again, as an operator requests it.
    func replay(after sequence: Int64, through last: Int64) throws {
        let time = now.withLock { $0 }
        if way == .webhook {
            _ = try directory.webhooks.request(
                .replay, of: try name, of: "shop", after: sequence, through: last, at: time)
        } else if way == .pull {
            _ = try consumers.seek(try id, to: .after(sequence))
        } else {
            try directory.streams.seek("out", of: "shop", after: sequence, at: time)
        }
    }

    /// The id and the content of each message to a webhook or a stream. Other kinds send no messages.
    var sent: [(id: String, content: String)] {
        way == .webhook
            ? requests.map { (id: $0.messageID, content: $0.body) }
            : receiver.stream.messages.map {
                (id: $0.headers["Countersign-Position"] ?? "", content: $0.body)
            }
    }

    /// Whether the last delivery reports a gap; nil for a kind of delivery that can't.
    var reportsGap: Bool? {
        switch way {
        case .webhook: receiver.requests.withLock { $0.last?.isAfterGap }
        case .file:
            (try? String(
                contentsOfFile: receiver.path.withLock { $0 } + "/shop/manifest.ndjson", encoding: .utf8))?
                .split(separator: "\n").last?.contains(#""events_missed":true"#)
        case .pull: receiver.pulled.withLock { $0.reportsGap }
        case .stream, .sample: nil
        }
    }

    var id: EventConsumerID {
        get throws { EventConsumerID(appID: "shop", kind: way.kind, name: try name) }
    }

    func delete() throws {
        switch way {
        case .webhook: try directory.webhooks.delete(try name, of: "shop")
        case .stream: try directory.streams.delete("out", of: "shop")
        case .file: _ = try directory.deleteApp(id: "shop")
        case .sample:
            route.withLock { $0 = nil }
            _ = try directory.createApp(id: "other")
        case .pull: try consumers.delete(try id)
        }
    }

    // MARK: Work

    /// Makes the receiver unreachable, or reachable again.
    func setAway(_ isAway: Bool) {
        receiver.isAway.withLock { $0 = isAway }
        receiver.stream.isAway = isAway
        guard way == .file || way == .sample else { return }
        // A file in place of the folder, or a folder in place of the file, cannot be written.
        let path = receiver.path.withLock { $0 }
        if isAway {
            rename(path, path + ".kept")
            if way == .file { close(creat(path, 0o600)) } else { mkdir(path, 0o700) }
        } else {
            if way == .file { unlink(path) } else { rmdir(path) }
            rename(path + ".kept", path)
        }
    }

    /// Advances the clock and does the work that is due; at most `most` steps.
    func advance(after milliseconds: Int64 = 0, most: Int = .max) {
        now.withLock { $0 += milliseconds }
        if way == .pull { return pull(most) }
        runner.wake()
        runner.check()
        pool.drain(most)
        if most == .max { runner.check() }
    }

    /// Leases and processes events in one step, and acknowledges them in the next. An unreachable client leaves
    /// the lease to expire.
    private func pull(_ most: Int) {
        for step in stride(from: 0, to: most, by: 2) {
            guard let id = try? id, case .leased(let lease)? = try? consumers.lease(id, limit: 4, seconds: 5)
            else { return }
            guard !receiver.isAway.withLock({ $0 }) else { return }
            receiver.pulled.withLock { pulled in
                pulled.ids += lease.events.map(\.messageID)
                pulled.reportsGap = lease.gap.isOpen
            }
            guard step + 1 < most else { return }
            _ = try? consumers.acknowledge(lease.id, of: id, through: nil)
        }
    }

    /// The ids of the events in the order of arrival, repetitions included.
    var received: [String] {
        switch way {
        case .webhook: receiver.webhooks.withLock { $0 }
        case .stream: receiver.stream.positions
        case .file: listedEvents
        case .pull: receiver.pulled.withLock { $0.ids }
        case .sample:
            ((try? String(contentsOfFile: receiver.path.withLock { $0 }, encoding: .utf8)) ?? "")
                .split(separator: "\n").map(String.init)
        }
    }

    /// The ids of the events in the files that the manifest lists.
    private var listedEvents: [String] {
        func objects(_ text: Data) -> [[String: Any]] {
            text.split(separator: 0x0A).compactMap {
                (try? JSONSerialization.jsonObject(with: $0)) as? [String: Any]
            }
        }
        let folder = receiver.path.withLock { $0 } + "/shop/"
        let manifest = FileManager.default.contents(atPath: folder + "manifest.ndjson") ?? Data()
        return objects(manifest).flatMap { entry in
            let file = folder + (entry["file"] as? String ?? "")
            return objects(Data((try? runProgram(["zstd", "-dqc", file]).output) ?? []))
        }.compactMap { $0["message_id"] as? String }
    }

    func progress() throws -> DeliveryProgress? {
        try consumers.progress(way.kind)[try id]
    }
}
