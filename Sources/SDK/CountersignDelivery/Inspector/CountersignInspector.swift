public import CountersignCore
internal import CountersignTransport
public import Foundation

/// The state of a client at one time, for debugging.
///
/// The description has several lines. It has the user's id and the token's claims, but no token and no event content.
public struct CountersignInspection: Sendable, CustomStringConvertible {
    /// The time of the inspection.
    public let time: Date
    /// Counters and state of the delivery queue.
    public let snapshot: CountersignSnapshot
    /// The present user; nil if no user is set.
    public let userID: String?
    /// The claims of that user's token; nil without a readable token. The signature is not verified.
    public let claims: JSONObject?
    /// The last authentication failures, the newest last, ten at most.
    public let verdicts: [AuthenticationFailure]

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var description: String {
        var lines = ["Countersign at \(Self.text(time))"]
        func line(_ name: String, _ text: String) {
            lines.append(name + String(repeating: " ", count: max(1, 9 - name.count)) + text)
        }
        func attempt(_ wait: Double) -> String { "next attempt in \(Int(min(wait.rounded(.up), 1e15))) s" }
        line("user", "\(userID ?? "none"), session \(snapshot.sessionID)")
        line("token", tokenText)
        line(
            "queue",
            "\(snapshot.queued) events in \(snapshot.queuedBytes) bytes, \(snapshot.unsaved) not on disk, "
                + "\(snapshot.sent) sent, \(snapshot.quarantined) quarantined, \(snapshot.dropped) dropped")
        for parked in snapshot.parked {
            let next =
                parked.isPaused
                ? "paused until a new token, a session or flush()"
                : parked.nextAttemptIn.map(attempt) ?? "due"
            line(
                "waiting",
                "\(parked.userID ?? "no user"): \(parked.reason), \(parked.failures) failures, \(next)")
        }
        if let problem = snapshot.configurationProblem { line("settings", problem) }
        if let error = snapshot.lastError {
            line("failure", error + (snapshot.nextAttemptIn.map { ", " + attempt($0) } ?? ""))
        }
        for verdict in verdicts {
            line(
                "verdict",
                "\(Self.text(verdict.requestTime)) \(verdict.code.rawValue) \(verdict.reason), "
                    + "\(verdict.userID ?? "no user"), \(verdict.occurrences) times"
                    + (verdict.isOptional ? ", events accepted anyway" : ""))
        }
        return lines.joined(separator: "\n")
    }

    private static func text(_ date: Date) -> String {
        var text: [UInt8] = []
        Timestamp.write(date, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    private var tokenText: String {
        guard let claims else { return "not readable" }
        let text = String(decoding: JSONValue.object(claims).bytes, as: UTF8.self)
        guard let seconds = claims["exp"]?.double else { return text + ", no end" }
        let rest = Milliseconds(seconds: seconds - time.timeIntervalSince1970).count / 1_000
        return text + (rest > 0 ? ", ends in \(rest) s" : ", ended \(-rest) s ago")
    }
}

/// Reads the state of a client. With SwiftUI, `CountersignInspectorView` shows that state.
///
/// ```swift
/// let inspector = CountersignInspector(client)
/// print(await inspector.inspect())
/// ```
public final class CountersignInspector: Sendable {
    private static let maximumVerdicts = 10

    private let pipeline: DeliveryPipeline
    /// Returns the current user and token. Retains the client.
    private let user: @Sendable () async -> (id: String?, token: SignedToken?)
    private let verdicts = Lock<[AuthenticationFailure]>([])
    private let listener: Task<Void, Never>

    package init(
        _ pipeline: DeliveryPipeline, user: @escaping @Sendable () async -> (id: String?, token: SignedToken?)
    ) {
        self.pipeline = pipeline
        self.user = user
        listener = Task { [verdicts, failures = pipeline.engine.failures.stream()] in
            for await failure in failures { Self.add(failure, to: verdicts) }
        }
    }

    deinit {
        listener.cancel()
    }

    private static func add(_ failure: AuthenticationFailure, to verdicts: Lock<[AuthenticationFailure]>) {
        verdicts.withLock { verdicts in
            // A repetition replaces the previous entry.
            verdicts.removeAll {
                $0.userID == failure.userID && $0.code == failure.code && $0.token == failure.token
            }
            verdicts.append(failure)
            verdicts.removeFirst(max(0, verdicts.count - maximumVerdicts))
        }
    }

    /// Returns the present state of the client. Does not wait for a running request.
    public func inspect() async -> CountersignInspection {
        let user = await user()
        return CountersignInspection(
            time: pipeline.clock.now, snapshot: await pipeline.snapshot(), userID: user.id,
            claims: user.token?.claimsObject, verdicts: verdicts.withLock { $0 })
    }

    /// Returns the state of the client repeatedly, until the reading task ends or the inspector is released.
    ///
    /// - Parameter seconds: The interval in seconds; at least 0.1.
    /// - Returns: A stream that begins with the present state and buffers only the newest one.
    public func inspections(every seconds: TimeInterval = 1) -> AsyncStream<CountersignInspection> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let task = Task { [weak self, clock = pipeline.clock] in
                while !Task.isCancelled, let inspection = await self?.inspect() {
                    continuation.yield(inspection)
                    guard (try? await clock.sleep(until: clock.uptime + max(0.1, seconds))) != nil else {
                        break
                    }
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}
