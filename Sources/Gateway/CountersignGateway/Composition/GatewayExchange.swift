internal import CountersignCore
internal import Foundation
internal import GatewayIngest
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

/// Transient messages between the gateways of a cluster, for live verification results and for samples whose
/// token is in another gateway's memory. Does nothing without a cluster.
final class GatewayExchange: Sendable {
    /// The time for which other gateways send live results after a `watch` message, and the interval of these messages.
    private static let watchSeconds: UInt64 = 15
    private static let announceNanoseconds: UInt64 = 5_000_000_000
    /// The maximum wait for a response. Another gateway reads a question within a second.
    private static let questionSeconds = 2.5
    private static let mostQuestions = 16

    private struct State {
        var announced: UInt64?
        var outgoing: [ClusterMessage] = []
        /// The responses by the id of the question; nil before the response.
        var answers: BytewiseDictionary<SampleVerifier.Verdict?> = [:]
        var sharedUntil: UInt64 = 0
        var isStopping = false
    }

    private let channel: (any ClusterChannel)?
    private let gateways: @Sendable () -> Int
    private let feed: LiveFeed
    private let verifier: SampleVerifier
    private let samples: any AnalyticsLog
    private let state = Lock(State())
    private let answered = Condition()

    /// `verifier` uses only this gateway's memory. `gateways` returns the number of live gateways.
    init(
        _ channel: (any ClusterChannel)?, gateways: @escaping @Sendable () -> Int, _ feed: LiveFeed,
        _ verifier: SampleVerifier, _ samples: any AnalyticsLog
    ) {
        self.gateways = gateways
        self.channel = channel
        self.feed = feed
        self.verifier = verifier
        self.samples = samples
    }

    func start() {
        guard let channel else { return }
        feed.whenWatched { channel.wake() }
        channel.start(
            take: { [weak self] in self?.take() ?? [] }, receive: { [weak self] in self?.receive($0) },
            isBusy: { [weak self] in self?.isBusy ?? false })
    }

    /// Ends all waits for responses and rejects new ones.
    func stopWaiting() {
        answered.lock()
        state.withLock { $0.isStopping = true }
        answered.broadcast()
        answered.unlock()
    }

    func stop() { channel?.stop() }

    /// Asks other gateways to verify a sample. Returns nil without a response. May take some seconds.
    func verify(_ sample: FailureSample) -> SampleVerifier.Verdict? {
        guard let channel, gateways() > 1 else { return nil }
        let id = UUIDv7.make()
        let isAsked = state.withLock { state in
            guard !state.isStopping, state.answers.count < Self.mostQuestions else { return false }
            state.answers[id] = .some(nil)
            let question: JSONValue = [
                "id": .string(id), "sample": .string(sample.id), "app": .string(sample.appID),
            ]
            state.outgoing.append(ClusterMessage(.question, question))
            return true
        }
        guard isAsked else { return nil }
        channel.wake()
        let end = DispatchTime.now() + Self.questionSeconds
        answered.lock()
        while state.withLock({ !$0.isStopping && ($0.answers[id] ?? nil) == nil }), answered.wait(until: end)
        {}
        answered.unlock()
        return state.withLock { $0.answers.removeValue(forKey: id) } ?? nil
    }

    // MARK: On the channel's thread

    private var isBusy: Bool {
        let now = DispatchTime.now().uptimeNanoseconds
        return feed.isWatched || state.withLock { $0.sharedUntil > now || !$0.answers.isEmpty }
    }

    private func take() -> [ClusterMessage] {
        let now = DispatchTime.now().uptimeNanoseconds
        let isWatched = feed.isWatched
        var messages = state.withLock { state in
            defer { state.outgoing = [] }
            if isWatched, state.announced.map({ now - $0 >= Self.announceNanoseconds }) ?? true {
                state.announced = now
                state.outgoing.append(ClusterMessage(.watch, [:]))
            }
            if !isWatched { state.announced = nil }
            return state.outgoing
        }
        let shared = feed.takeShared()
        if !shared.entries.isEmpty { messages.append(ClusterMessage(.verdicts, shared.json)) }
        return messages
    }

    private func receive(_ message: ClusterMessage) {
        switch message.kind {
        case .watch:
            feed.share(forSeconds: Self.watchSeconds)
            let now = DispatchTime.now().uptimeNanoseconds
            state.withLock { $0.sharedUntil = now + Self.watchSeconds * 1_000_000_000 }
        case .verdicts: feed.add(LiveFeed.Shared(json: message.body))
        case .question: answer(message.body)
        case .answer: note(message.body)
        }
    }

    private func answer(_ question: JSONValue) {
        guard let members = question.members, let id = members["id"],
            let sampleID = members["sample"].flatMap({ String(jsonValue: $0) }),
            verifier.hasToken(of: sampleID),
            let app = members["app"].flatMap({ String(jsonValue: $0) }),
            let sample = try? samples.sample(id: sampleID, of: app), let verdict = verifier.again(sample)
        else { return }
        let answer: JSONValue = [
            "id": id, "checks": verdict.checks.jsonValue, "code": (verdict.code?.rawValue).jsonValue,
            "note": verdict.note.jsonValue,
        ]
        state.withLock { $0.outgoing.append(ClusterMessage(.answer, answer)) }
        channel?.wake()
    }

    private func note(_ answer: JSONValue) {
        guard let members = answer.members, let id = members["id"].flatMap({ String(jsonValue: $0) }),
            let checks = members["checks"].flatMap({ [FailureSample.Check](jsonValue: $0) })
        else { return }
        let verdict = SampleVerifier.Verdict(
            checks: checks,
            code: members["code"].flatMap { Int(jsonValue: $0) }.map { AuthErrorCode(rawValue: $0) },
            note: members["note"].flatMap { String(jsonValue: $0) })
        answered.lock()
        state.withLock { state in
            // `verify` removes the question when it times out.
            if state.answers[id] != nil { state.answers[id] = .some(verdict) }
        }
        answered.broadcast()
        answered.unlock()
    }
}
