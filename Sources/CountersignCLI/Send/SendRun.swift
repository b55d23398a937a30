internal import Countersign
internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

/// Sends events in batches until the gateway has stored each, or has refused it for good.
struct SendRun: Sendable {
    let events: [SendEvent]
    let url: URL
    let writeKey: String
    /// Signs a token for each user; nil when ``token`` or nothing goes along.
    let signingKey: SigningKey?
    /// Goes with every request; nil when there is none.
    let token: String?
    /// Hears how many of the events are done.
    let progress: @Sendable (Int) -> Void
    let say: @Sendable (String) -> Void
    /// Sleeps; throws when the task is cancelled.
    let pause: @Sendable (Double) async throws -> Void
    var transport: any HTTPTransport = makeDefaultTransport()

    /// What became of the events.
    struct Outcome: Sendable, Equatable {
        var accepted = 0
        var duplicates = 0
        /// Refused one by one: the line and why.
        var rejected: [Replay.Problem] = []
    }

    private static let batchEvents = 100
    private static let longestPause = 60.0
    /// With pauses of 2, 4, 8 and 16 s between them, when nothing was ever reached.
    private static let firstAttempts = 5

    /// - Throws: `unavailable` when the gateway is not reached even once, `notAuthorized` when the key or a token is
    ///   refused, `failed` on an answer that no new try changes.
    func run() async throws -> Outcome {
        var outcome = Outcome()
        var index = 0
        var size = Self.batchEvents
        var tries = 0
        var wasReached = false
        while index < events.count {
            let batch = batch(from: index, size: size)
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
                            "is the URL right, and does the gateway run? `countersign doctor` looks for the reason"
                    )
                }
                let wait = wasReached ? Self.wait(nil, tries: tries - 1) : pow(2, Double(tries))
                try await pause(wait, because: Self.words(for: error))
                continue
            }
            switch answer.status {
            case 200:
                try note(answer, batch, &outcome)
                index += batch.count
                tries = 0
                progress(index)
            case 413 where batch.count > 1: size = max(1, batch.count / 2)
            case 408, 429, 500...599:
                let wait = Self.wait(answer, tries: tries)
                tries += 1
                try await pause(wait, because: "the gateway answered \(answer.status)")
            case 401, 403:
                throw CommandError(
                    .notAuthorized,
                    "the gateway refused line \(batch.first?.line ?? 0): \(Self.reason(answer))")
            case let status:
                throw CommandError(
                    .failed,
                    "the gateway answered \(status) at line \(batch.first?.line ?? 0): \(Self.reason(answer))",
                    hint: status == 404
                        ? "a listener for operators takes no events: --url says where clients send" : nil)
            }
        }
        return outcome
    }

    private func pause(_ seconds: Double, because reason: String) async throws {
        say("\(reason); trying again in \(Int(seconds.rounded(.up))) s")
        try await pause(seconds)
    }

    /// What keeps an answer from coming, for a person.
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

    /// The next events that may share a request: with tokens those of one user, without all.
    private func batch(from index: Int, size: Int) -> ArraySlice<SendEvent> {
        let part = events[index..<min(index + size, events.count)]
        guard signingKey != nil || token != nil, let first = part.first else { return part }
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

    private func note(
        _ answer: TransportResponse, _ batch: ArraySlice<SendEvent>, _ outcome: inout Outcome
    ) throws {
        let body = answer.body
        let numbers = try? StrictJSONParser(maximumBytes: max(1, body.count)).parse(bytes: body) { root in
            (
                accepted: root["accepted"]?.int64 ?? 0, duplicates: root["duplicates"]?.int64 ?? 0,
                rejected: root["rejected"]?.elements.map { item in
                    (index: item["index"]?.int64 ?? 0, reason: item["reason"]?.string ?? "")
                } ?? []
            )
        }
        guard let numbers else {
            throw CommandError(.failed, "the answer of \(url.absoluteString) is not a gateway's")
        }
        outcome.accepted += Int(numbers.accepted)
        outcome.duplicates += Int(numbers.duplicates)
        for (index, reason) in numbers.rejected where (0..<Int64(batch.count)).contains(index) {
            outcome.rejected.append(
                Replay.Problem(line: batch[batch.startIndex + Int(index)].line, reason: reason))
        }
    }

    /// `Retry-After` in seconds, else exponentially longer with full jitter.
    private static func wait(_ answer: TransportResponse?, tries: Int) -> Double {
        if let text = answer?.header("Retry-After"), let seconds = Double(text), seconds >= 0 {
            return min(seconds, longestPause)
        }
        return Double.random(in: 0.1...min(longestPause, 0.5 * pow(2, Double(min(tries, 10)))))
    }

    private static func reason(_ answer: TransportResponse) -> String {
        let body = answer.body
        let reason = try? StrictJSONParser(maximumBytes: max(1, body.count)).parse(bytes: body) { root in
            root["auth_error"]?["hint"]?.string ?? root["reason"]?.string
        }
        return TerminalText.safe((reason ?? nil) ?? "status \(answer.status)")
    }
}
