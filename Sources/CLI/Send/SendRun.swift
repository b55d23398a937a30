internal import CountersignCore
internal import CountersignJOSE
internal import CountersignTransport
internal import Foundation

/// Sends events in batches until the gateway has stored or rejected each.
struct SendRun: Sendable {
    let events: [SendEvent]
    let url: URL
    let writeKey: String
    /// Signs a token for each user; nil if ``token`` or no token is used.
    let signingKey: SigningKey?
    /// The token for all requests; nil without one.
    let token: String?
    /// Called with the number of finished events, and the number after which an interrupted run resumes. The second
    /// number stays before the first batch with a rejected event, so that rejected events are sent again.
    let progress: @Sendable (_ finished: Int, _ resumes: Int) -> Void
    let say: @Sendable (String) -> Void
    /// Sleeps. Throws if the task is cancelled.
    let pause: @Sendable (Double) async throws -> Void
    var transport: any HTTPTransport = makeDefaultTransport()

    struct Outcome: Sendable, Equatable {
        var accepted = 0
        var duplicates = 0
        /// The rejected events: their lines and reasons.
        var rejected: [Replay.Problem] = []
    }

    private static let batchEvents = 100
    private static let retries = RetryPolicy(baseDelay: 0.5, maximumDelay: 60, maximumServerDelay: 60)
    /// The number of attempts before the first response, with pauses of 2, 4, 8 and 16 s.
    private static let firstAttempts = 5
    private static let firstRetries = RetryPolicy(baseDelay: 2, maximumDelay: 16)

    /// Throws `unavailable` if the gateway was never reached, `notAuthorized` if the write key or the tokens
    /// of all events were rejected, and `failed` for other permanent errors.
    func run() async throws -> Outcome {
        var outcome = Outcome()
        var index = 0
        var size = Self.batchEvents
        var tries = 0
        var wasReached = false
        // Whether each request has events of one user only.
        var isByUser = signingKey != nil || token != nil
        var rejectedUser: CommandError?
        var firstRejected: Int?
        func end(_ batch: ArraySlice<SendEvent>) {
            if firstRejected == nil, !outcome.rejected.isEmpty { firstRejected = index }
            index += batch.count
            size = min(size * 2, Self.batchEvents)
            tries = 0
            progress(index, firstRejected ?? index)
        }
        while index < events.count {
            let batch = batch(from: index, size: size, isByUser: isByUser)
            let answer: TransportResponse
            do throws(HTTPTransportError) {
                answer = try await send(batch)
                wasReached = true
            } catch {
                wasReached = wasReached || error.code == .connectionLost
                tries += 1
                guard wasReached || tries < Self.firstAttempts else {
                    throw CommandError(
                        .unavailable, "\(url.absoluteString) cannot be reached: \(Self.words(for: error))",
                        hint:
                            "is the URL right, and is the gateway running? `countersign doctor` looks for the reason"
                    )
                }
                let wait =
                    wasReached
                    ? Self.wait(nil, tries: tries - 1)
                    : Self.firstRetries.delay(afterFailure: tries, fraction: 1)
                try await pause(wait, because: Self.words(for: error))
                continue
            }
            switch answer.status {
            case 200:
                try note(answer, batch, &outcome)
                end(batch)
            case 413 where batch.count > 1: size = max(1, batch.count / 2)
            case 413:
                reject(batch, answer, &outcome)
                end(batch)
            case 408, 429, 500...599:
                let wait = Self.wait(answer, tries: tries)
                tries += 1
                try await pause(wait, because: "the gateway answered \(answer.status)")
            case 401, 403:
                let error = CommandError(
                    .notAuthorized,
                    "the gateway rejected line \(batch.first?.line ?? 0): \(Self.reason(answer))")
                guard Self.isOfUser(answer) else { throw error }
                guard isByUser || batch.allSatisfy({ $0.userID == batch.first?.userID }) else {
                    isByUser = true
                    continue
                }
                if rejectedUser == nil { say("\(error.reason); sending the other users' events") }
                rejectedUser = rejectedUser ?? error
                reject(batch, answer, &outcome)
                end(batch)
            case 400 where Self.rejectsEach(answer, of: batch):
                try note(answer, batch, &outcome)
                end(batch)
            case let status:
                throw CommandError(
                    .failed,
                    "the gateway answered \(status) at line \(batch.first?.line ?? 0): \(Self.reason(answer))",
                    hint: status == 404
                        ? "the operators' listener accepts no events: give the clients' address with --server"
                        : nil)
            }
        }
        if let rejectedUser, outcome.rejected.count == events.count {
            // The gateway has stored no event, so the next run begins where this run began.
            progress(0, 0)
            throw rejectedUser
        }
        return outcome
    }

    private func pause(_ seconds: Double, because reason: String) async throws {
        say("\(reason); trying again in \(Int(seconds.rounded(.up))) s")
        try await pause(seconds)
    }

    private static func words(for error: HTTPTransportError) -> String {
        let what =
            switch error.code {
            case .cannotConnect: "cannot connect"
            case .connectionLost: "the connection broke"
            case .timedOut: "no answer in time"
            case .tls: "TLS failed"
            default: "no answer"
            }
        return "\(what) (\(TerminalText.safe(error.detail)))"
    }

    private func batch(from index: Int, size: Int, isByUser: Bool) -> ArraySlice<SendEvent> {
        let part = events[index..<min(index + size, events.count)]
        guard isByUser, let first = part.first else { return part }
        let end = part.firstIndex { $0.userID != first.userID } ?? part.endIndex
        return part[..<end]
    }

    private func send(
        _ batch: ArraySlice<SendEvent>
    ) async throws(HTTPTransportError) -> TransportResponse {
        var headers: [(name: String, value: String)] = [
            ("Content-Type", "application/json"), ("X-Write-Key", writeKey),
        ]
        if let token = credential(for: batch.first?.userID) {
            headers.append(("Authorization", "Bearer \(token)"))
        }
        let body: JSONValue = ["batch": .array(batch.map(\.message))]
        return try await transport.send(
            TransportRequest(
                url: url.appendingPathComponent("v1/batch"), headers: headers, body: body.bytes))
    }

    private func credential(for userID: String?) -> String? {
        guard let userID else { return nil }
        guard let signingKey else { return token }
        let now = Int64(Date().timeIntervalSince1970)
        return try? signingKey.sign(claims: [
            "sub": .string(userID), "iat": .integer(now), "exp": .integer(now + 600),
        ])
    }

    /// Whether a request is rejected for its user, so that requests of other users may succeed.
    private static func isOfUser(_ answer: TransportResponse) -> Bool {
        let body = JSONValue(parsing: answer.body) ?? .null
        return body["auth_error"] != .null || body["code"].text == "user_blocked"
    }

    private func reject(
        _ batch: ArraySlice<SendEvent>, _ answer: TransportResponse, _ outcome: inout Outcome
    ) {
        outcome.rejected += batch.map { Replay.Problem(line: $0.line, reason: Self.reason(answer)) }
    }

    /// Whether the response has a reason for each event of the batch, so that sending can continue after the batch.
    private static func rejectsEach(_ answer: TransportResponse, of batch: ArraySlice<SendEvent>) -> Bool {
        JSONValue(parsing: answer.body)?["rejected"].elements.count == batch.count
    }

    private func note(
        _ answer: TransportResponse, _ batch: ArraySlice<SendEvent>, _ outcome: inout Outcome
    ) throws {
        // A response with status 400 has `rejected` without the two counts. A missing count is 0.
        guard let body = JSONValue(parsing: answer.body),
            body["accepted"].count + body["duplicates"].count + Int64(body["rejected"].elements.count)
                == batch.count
        else {
            throw CommandError(.failed, "the answer of \(url.absoluteString) is not a gateway's")
        }
        outcome.accepted += Int(body["accepted"].count)
        outcome.duplicates += Int(body["duplicates"].count)
        for item in body["rejected"].elements {
            guard let index = item["index"].integer, (0..<Int64(batch.count)).contains(index) else {
                continue
            }
            let line = batch[batch.startIndex + Int(index)].line
            outcome.rejected.append(Replay.Problem(line: line, reason: item["reason"].text ?? ""))
        }
    }

    private static func wait(_ answer: TransportResponse?, tries: Int) -> Double {
        retries.delay(
            afterFailure: tries + 1, serverDelay: answer?.header("Retry-After").flatMap(Double.init),
            fraction: .random(in: 0.1...1))
    }

    private static func reason(_ answer: TransportResponse) -> String {
        let body = JSONValue(parsing: answer.body) ?? .null
        let reason = body["auth_error"]["hint"].text ?? body["reason"].text
        return TerminalText.safe(reason ?? "status \(answer.status)")
    }
}
