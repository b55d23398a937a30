internal import CountersignCore
internal import Foundation
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// Reads an app's events by position and delivers them to a URL, in order and signed as a webhook's.
actor Listen {
    struct Options: Sendable {
        let app: String
        let webhook: PushWebhook
        /// The members of ``Invocation/start()``; empty starts after the newest event.
        var start: JSONObject = [:]
        var filter: [(name: String, value: String?)] = []
        var batchSize = 100
        var printsJSON = false
    }

    private struct Page: Sendable {
        var events: [[UInt8]]
        let next: String
        let hasMore: Bool
    }

    private struct Message {
        let id = DeliveryRequest.newMessageID()
        let body: [UInt8]
        let events: Int
        let first: JSONValue
        let last: JSONValue
    }

    /// The time limit of a delivery in seconds, the same as for a webhook.
    private static let deliverySeconds = 20
    /// The maximum length of a receiver's answer that is printed.
    private static let shownAnswerBytes = 200
    /// The maximum number of attempts to delete the temporary consumer.
    private static let deletions = 4

    private let options: Options
    private let admin: RemoteAdmin
    private let io: CommandIO
    private let pause: @Sendable (Double) async throws -> Void
    private let pool = OutboundPool()
    /// The position up to which all matching events were delivered; nil before the oldest event.
    private var position: String?
    private(set) var isConnected = false
    /// Whether retention deleted events, and no accepted delivery has reported this.
    private var isAfterGap = false
    /// The maximum number of events in a delivery, reduced after 413 until accepted deliveries have raised it again.
    private var limit: Int
    private var (delivered, requests, failed) = (0, 0, 0)

    init(
        _ options: Options, admin: RemoteAdmin, io: CommandIO,
        pause: @escaping @Sendable (Double) async throws -> Void = { try await Task.sleep(for: .seconds($0)) }
    ) {
        self.options = options
        self.admin = admin
        self.io = io
        self.pause = pause
        limit = options.batchSize
    }

    var summary: String {
        "Delivered events: \(delivered), requests: \(requests), failed requests: \(failed)."
            + (position.map { " --position \($0) continues from here." } ?? "")
    }

    /// Delivers until the task is cancelled. Throws if the gateway rejects a request or was never reached.
    func run() async throws {
        position = try await start()
        io.say(
            "Waiting for events of \(options.app) at \(admin.location), to deliver to \(TerminalText.safe(options.webhook.url))."
        )
        while true {
            let page = try await page()
            var events = page.events[...]
            while !events.isEmpty { events = events.dropFirst(try await deliver(events)) }
            position = page.next
            // A gateway that is shutting down responds at once, so this loop must not repeat without a pause.
            if page.events.isEmpty, !page.hasMore { try await pause(1) }
        }
    }

    // MARK: Reading

    /// The position to start after; nil for the oldest event.
    ///
    /// The API resolves the newest event and times only for consumers, so this creates a consumer and deletes it
    /// at once, in a task that Ctrl-C does not cancel.
    private func start() async throws -> String? {
        var body = options.start
        if let position = body["position"] { return position.text }
        if body["from"] == "start" { return nil }
        if body.isEmpty { body["from"] = "end" }
        let name = "listen-" + UUIDv7.make()
        body["name"] = .string(name)
        let path = ["apps", options.app, "consumers"]
        let create = AdminRequest(method: "POST", path: path, body: .object(body), root: "/v1")
        let consumer = try await Task {
            let created = try await admin.send(create).body
            try await delete(consumer: name)
            return created
        }.value
        isConnected = true
        return consumer["partitions"].elements.first?["position"].text
    }

    private func delete(consumer name: String) async throws {
        let request = AdminRequest(
            method: "DELETE", path: ["apps", options.app, "consumers", name], root: "/v1")
        for attempt in 1... {
            do {
                _ = try await admin.send(request)
                return
            } catch let error as CommandError where error.code == .notFound && attempt > 1 {
                // An earlier attempt deleted the consumer, but its response was lost.
                return
            } catch let error as CommandError {
                let reason = "the temporary consumer \(name) was not deleted: \(error.reason)"
                guard error.code == .unavailable, attempt < Self.deletions else {
                    throw CommandError(
                        error.code, reason,
                        hint: "`countersign consumer delete \(options.app) \(name)` deletes it")
                }
                try await wait(afterFailure: attempt, reason)
            }
        }
    }

    /// Reads the next page. Retries while a gateway that has answered before is unavailable.
    private func page() async throws -> Page {
        var failures = 0
        while true {
            do {
                let page = try await read()
                isConnected = true
                return page
            } catch let error as CommandError where error.code == .unavailable && isConnected {
                failures += 1
                try await wait(afterFailure: failures, error.reason)
            }
        }
    }

    private func read() async throws -> Page {
        let lines = Lock((pieces: LineBuffer(), events: [[UInt8]]()))
        let request = AdminRequest(
            method: "GET", path: ["apps", options.app, "events"],
            query: options.filter + [
                ("after", position), ("limit", String(options.batchSize)), ("wait", "30"),
            ], root: "/v1")
        let fields = try await admin.stream(request, accept: "application/x-ndjson", timeout: 45) { bytes in
            lines.withLock { $0.events += $0.pieces.lines(bytes) }
        }
        func field(_ name: String) -> String? { fields.first { $0.name.lowercased() == name }?.value }
        guard let next = field("x-countersign-next") else {
            throw CommandError(
                .failed, "the answer has no position", hint: "is this the URL of a Countersign gateway?")
        }
        if field("x-countersign-events-missed") == "true" { isAfterGap = true }
        return Page(
            events: lines.withLock { $0.events }, next: next,
            hasMore: field("x-countersign-has-more") == "true")
    }

    // MARK: Delivering

    /// Delivers as many events as fit into one request, again until the receiver accepts them. Returns their number.
    private func deliver(_ events: ArraySlice<[UInt8]>) async throws -> Int {
        var message = try message(events)
        var attempt = 1
        while true {
            let began = Milliseconds(Date()).count
            let result = await send(message)
            if result.error == OutboundRequest.Failure.Code.cancelled.rawValue { throw CancellationError() }
            requests += 1
            try show(message, attempt, result, atMilliseconds: began)
            guard result.error != nil else {
                delivered += message.events
                position = message.last["position"].text ?? position
                isAfterGap = false
                limit = min(options.batchSize, limit + max(1, limit / 8))
                return message.events
            }
            failed += 1
            if result.status == 413, message.events > 1 {
                limit = message.events / 2
                (message, attempt) = (try self.message(events), 1)
                continue
            }
            try await wait(
                afterFailure: attempt, atLeast: result.retryAfterSeconds,
                "not delivered: \(result.reason); \(Self.advice(result))")
            attempt += 1
        }
    }

    private func message(_ events: ArraySlice<[UInt8]>) throws -> Message {
        var body = WebhookBody(appID: options.app, isAfterGap: isAfterGap)
        for event in events.prefix(limit) { guard body.append(event) else { break } }
        let count = body.events
        func event(_ offset: Int) throws -> JSONValue {
            guard let event = JSONValue(parsing: events[events.startIndex + offset], maximumDepth: 1_024)
            else { throw CommandError(.failed, "a line of the answer is not an event") }
            return event
        }
        return Message(
            body: body.finished(), events: count, first: try event(0), last: try event(count - 1))
    }

    private func send(_ message: Message) async -> WebhookAttempt {
        let isCancelled = Lock(false)
        let delivery = WebhookDelivery(
            body: message.body,
            headers: WebhookSignature.headers(
                id: message.id, timestamp: Int64(Date().timeIntervalSince1970), body: message.body,
                keys: [options.webhook.secret]),
            webhook: options.webhook, timeoutMilliseconds: Self.deliverySeconds * 1_000,
            isCancelled: { isCancelled.withLock { $0 } })
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                delivery.perform(on: pool) { continuation.resume(returning: $0) }
            }
        } onCancel: {
            isCancelled.withLock { $0 = true }
        }
    }

    private func wait(afterFailure failures: Int, atLeast least: Int? = nil, _ reason: String) async throws {
        let seconds = Tail.retries.delay(
            afterFailure: failures, serverDelay: least.map(Double.init), fraction: .random(in: 0.5...1))
        io.say("\(reason); trying again in \(Int(seconds.rounded(.up))) s")
        try await pause(seconds)
    }

    private static func advice(_ result: WebhookAttempt) -> String {
        switch result.status {
        case .some(300..<400): "redirects are not followed: pass the final address to --forward-to"
        case 400, 401, 403: "verify the body as received, with the secret of this run"
        case .some: "see the receiver's log; it must answer 2xx within \(deliverySeconds) seconds"
        case nil: "start the receiver, or correct --forward-to"
        }
    }

    private func show(
        _ message: Message, _ attempt: Int, _ result: WebhookAttempt, atMilliseconds began: Int64
    ) throws {
        guard !options.printsJSON else {
            return try io.print([
                "at_ms": .integer(began), "message_id": .string(message.id),
                "events": .integer(Int64(message.events)), "first_seq": message.first["seq"],
                "last_seq": message.last["seq"], "attempt": .integer(Int64(attempt)),
                "status": result.status.map { .integer(Int64($0)) } ?? .null,
                "error": result.error.map { .string($0) } ?? .null,
                "answer": .string(String(decoding: result.answer, as: UTF8.self)),
                "duration_ms": .integer(result.durationMilliseconds),
            ])
        }
        let names = ["type", "name", "message_id"].map { message.first[$0] }.filter { $0 != .null }
        let what =
            message.events == 1 ? names.map(\.shown).joined(separator: " ") : "\(message.events) events"
        let status = result.status.map(String.init) ?? result.error ?? ""
        let answer = TerminalText.safe(
            String(decoding: result.answer.prefix(Self.shownAnswerBytes), as: UTF8.self))
        try io.print(
            "\(RFC3339.text(milliseconds: began))  \(io.colored(status, result.error == nil ? .good : .bad))  \(result.durationMilliseconds) ms  \(what)"
                + (answer.isEmpty ? "" : "  \(answer)"))
    }
}
