import CountersignCore
import CountersignTransport
import Foundation
import SDKTestSupport

@testable import CountersignDelivery

/// Drives a `Sender` against a scripted server in simulated time and counts every request.
struct Simulation {
    struct Request {
        let time: TimeInterval
        let events: [QueuedEvent]
        let generation: Int
        let attempt: Int
    }

    enum Reply {
        case answer(ServerAnswer)
        case error(HTTPTransportError.Code)
    }

    var sender: Sender
    var queue: [QueuedEvent] = []
    var now: TimeInterval = 0
    var requests: [Request] = []
    var delivered: [QueuedEvent] = []
    var quarantined: [QueuedEvent] = []
    var failures: [ServerAnswer.TokenVerdict] = []
    var claims = 0
    /// The current token generation of each user.
    var generations: [UserKey: Int] = [:]
    var server: (Request) -> Reply
    /// The jitter; 1 gives the longest wait.
    var fraction: () -> Double = { 1 }

    init(settings: Sender.Settings = Sender.Settings(), server: @escaping (Request) -> Reply) {
        sender = Sender(settings: settings)
        self.server = server
    }

    mutating func record(_ count: Int, user: String? = nil, bytes: Int = 100) {
        for _ in 0..<count {
            let sequence = Int64(queue.count + delivered.count + quarantined.count + 1)
            queue.append(
                QueuedEvent(
                    sequence: sequence, messageID: "m\(sequence)", userID: user,
                    body: Array(repeating: 0x20, count: bytes)))
        }
        sender.stored(count, now: now)
    }

    /// Runs until the sender has no more work before `end`.
    mutating func run(until end: TimeInterval, maximumSteps: Int = 100_000) {
        for _ in 0..<maximumSteps {
            switch sender.next(now: now) {
            case .wait(let instant):
                guard let instant, instant <= end else {
                    now = end
                    return
                }
                now = max(now, instant)
            case .claim(let request):
                claims += 1
                sender.claimed(claim(request), now: now)
            case .authorize(let user, _):
                sender.authorized(generation: generations[user] ?? 0)
            case .send(let events, let attempt):
                send(events, attempt: attempt)
            case .apply(let outcome):
                apply(outcome)
            case .finish:
                break
            }
        }
        now = .infinity
    }

    private func claim(_ request: ClaimRequest) -> [QueuedEvent] {
        var (claimed, bytes): ([QueuedEvent], Int) = ([], 0)
        var owner: UserKey?
        for event in queue where !request.excluded.contains(event.sequence) {
            let user = UserKey(event.userID)
            guard owner == nil ? !request.blockedUsers.contains(user) : owner == user else { continue }
            owner = user
            bytes += event.body.count
            guard claimed.count < request.maximumEvents, claimed.isEmpty || bytes <= request.maximumBytes
            else { break }
            claimed.append(event)
        }
        return claimed
    }

    private mutating func send(_ events: [QueuedEvent], attempt: Int) {
        let request = Request(
            time: now, events: events, generation: generations[UserKey(events.first?.userID)] ?? 0,
            attempt: attempt)
        requests.append(request)
        let consequence: Sender.Consequence?
        switch server(request) {
        case .answer(let answer): consequence = sender.answered(answer, now: now, fraction: fraction())
        case .error(let code):
            consequence = sender.failed(HTTPTransportError(code, ""), now: now, fraction: fraction())
        }
        if let verdict = consequence?.failure { failures.append(verdict) }
    }

    private mutating func apply(_ outcome: DeliveryOutcome) {
        let gone = Set(
            outcome.delivered.map(\.sequence) + outcome.quarantined.map(\.event.sequence))
        delivered += outcome.delivered
        quarantined += outcome.quarantined.map(\.event)
        queue.removeAll { gone.contains($0.sequence) }
        sender.applied()
    }
}

extension Simulation.Reply {
    static let accepted = Simulation.Reply.answer(
        ServerAnswer(.accepted(duplicates: 0, rejected: [], warning: nil), status: 200))

    static func status(_ status: Int) -> Simulation.Reply {
        .answer(
            ServerAnswer(
                ServerAnswer.meaning(ofStatus: status, explanation: .init("http_\(status)", ""))
                    ?? .notUnderstood(.init("not_understood", "")), status: status))
    }

    static func rejectedToken(_ code: AuthErrorCode) -> Simulation.Reply {
        .answer(ServerAnswer(.tokenProblem(.init(code: code, reason: code.reason)), status: 401))
    }
}
