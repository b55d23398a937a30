import CountersignCore
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayTestSupport
import TestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayAdmin
@testable import GatewayHTTP
@testable import GatewayModel
@testable import GatewayObservability
@testable import GatewayStorage

/// Automatic enforcement: a ramp by share of users, a scheduled switch, and the return to optional.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct EnforcementTests {
    private let place: TestStorage

    init() throws { place = try TestStorage() }

    private let minute: Int64 = 60_000
    private let start: Int64 = 1_800_000_000_000

    /// An enforcement watch without a gateway, on a manual clock.
    private final class Bench: Sendable {
        let directory: AppDirectory
        let watch: EnforcementWatch
        let now: Lock<Int64>
        let seen = Lock(EnforcementWatch.Recent())
        let known = Lock(KnownTokens.Sum())
        let askedSince = Lock<Int64>(0)
        let sent = Lock<[Alert]>([])
        let outcome = Lock(WebhookOutcome.delivered)
        let freeSlots = Lock(64)
        let changes = Lock(0)

        init(_ place: TestStorage, at milliseconds: Int64, watched: AppDirectory? = nil) throws {
            let now = Lock(milliseconds)
            self.now = now
            directory = try place.openControl(as: .schedule)
            watch = EnforcementWatch(
                directory: try watched ?? place.openControl(as: .schedule),
                now: { Date(timeIntervalSince1970: Double(now.withLock { $0 }) / 1000) },
                recent: { [seen] _, _ in seen.withLock { $0 } },
                known: { [known, askedSince] _, since in
                    askedSince.withLock { $0 = since }
                    return known.withLock { $0 }
                }, changed: { [changes] in changes.withLock { $0 += 1 } },
                send: { [sent, outcome] alert, completion in
                    sent.withLock { $0.append(alert) }
                    completion(outcome.withLock { $0 })
                }, freeSlots: { [freeSlots] in freeSlots.withLock { $0 } }, log: GatewayLog(level: .off))
        }

        func advance(after milliseconds: Int64 = 0) {
            now.withLock { $0 += milliseconds }
            watch.check()
        }

        func see(_ requests: Int, rejected: Int) {
            seen.withLock { $0 = .init(requests: requests, rejected: rejected) }
        }

        func see(users: Int, lost: Int) { known.withLock { $0 = .init(users: users, lost: lost) } }
    }

    private func bench(_ plan: EnforcementPlan, sendsAlerts: Bool = false) throws -> Bench {
        let bench = try Bench(place, at: start)
        _ = try bench.directory.createApp(id: "shop")
        if sendsAlerts {
            _ = try bench.directory.setAlertWebhook(
                url: "https://alerts.example/in", secret: nil, for: "shop")
        }
        try bench.directory.setEnforcementPlan(plan, for: "shop", at: start)
        return bench
    }

    private func plan(_ bench: Bench) throws -> EnforcementPlan {
        try bench.directory.enforcementPlan(of: "shop")
    }

    @Test func aScheduledSwitchIsMadeOnTimeAndAudited() throws {
        var plan = EnforcementPlan()
        plan.state = .optional
        plan.scheduled = .init(state: .required, atMilliseconds: start + minute, rampPercent: 25)
        let bench = try bench(plan)
        bench.advance(after: minute - 1)
        #expect(try self.plan(bench).state == .optional && bench.changes.withLock { $0 } == 0)
        bench.advance(after: 1)
        let after = try self.plan(bench)
        #expect(after.state == .required && after.rampPercent == 25 && after.scheduled == nil)
        #expect(after.sinceMilliseconds == start + minute)
        #expect(bench.changes.withLock { $0 } == 1)
        let entry = try #require(try bench.directory.auditLog.entries(limit: 1).first)
        #expect(entry.action == "enforcement.scheduled" && entry.actor == "gateway" && entry.appID == "shop")
        #expect(entry.before?.contains(#""state":"optional""#) == true)
        #expect(entry.after?.contains(#""state":"required""#) == true)
        bench.advance(after: minute)
        #expect(bench.changes.withLock { $0 } == 1)
    }

    @Test func aScheduledSwitchTakesEffectDespiteALaterError() throws {
        let reads = Lock(0)
        let broken = HookedDatabase(
            try place.openControl(as: .schedule).database,
            willRead: { () throws(GatewayError) in
                reads.withLock { $0 += 1 }
                if reads.withLock({ $0 }) == 3 { throw GatewayError(.storage, "the disk failed") }
            })
        let watched = AppDirectory(broken, actor: .schedule, now: { Date() })
        let bench = try Bench(place, at: start, watched: watched)
        _ = try bench.directory.createApp(id: "shop")
        var plan = EnforcementPlan()
        plan.scheduled = .init(state: .required, atMilliseconds: start)
        try bench.directory.setEnforcementPlan(plan, for: "shop", at: start)
        bench.advance()
        #expect(try self.plan(bench).state == .required && bench.changes.withLock { $0 } == 1)
    }

    @Test func aManualChangeRemovesTheScheduledSwitch() throws {
        var plan = EnforcementPlan()
        plan.scheduled = .init(state: .required, atMilliseconds: start + minute)
        let bench = try bench(plan)
        try bench.directory.setEnforcement(.optional, for: "shop")
        bench.advance(after: 2 * minute)
        #expect(try self.plan(bench).state == .optional)
    }

    private func required(_ percent: Int, minimum: Int = 100) -> EnforcementPlan {
        var plan = EnforcementPlan()
        plan.state = .required
        plan.rampPercent = 50
        plan.autoReturn = .init(rejectedPercent: percent, windowMinutes: 5, minimumRequests: minimum)
        return plan
    }

    @Test func tooManyUsersWithLostTokensReturnTheAppToOptional() throws {
        let bench = try bench(required(10))
        // Fewer than 100 users, or a share below 10 percent, do not trigger the return.
        for (users, lost) in [(0, 0), (99, 99), (100, 9)] {
            bench.see(users: users, lost: lost)
            bench.advance(after: 1_000)
            #expect(try plan(bench).state == .required, "\(lost) of \(users)")
        }
        // Ignores verdicts from before the switch to required and those older than the window.
        #expect(bench.askedSince.withLock { $0 } == start)
        bench.advance(after: 10 * minute)
        #expect(bench.askedSince.withLock { $0 } == start + 3_000 + 5 * minute)

        bench.see(users: 120, lost: 15)
        bench.advance(after: 1_000)
        let after = try plan(bench)
        #expect(after.state == .optional && after.rampPercent == 100)
        #expect(after.returned == .init(atMilliseconds: start + 10 * minute + 4_000, rejectedPercent: 12.5))
        #expect(bench.changes.withLock { $0 } == 1)
        let entry = try #require(try bench.directory.auditLog.entries(limit: 1).first)
        #expect(entry.action == "enforcement.returned" && entry.actor == "gateway")
        // Without a webhook no alert is sent. The next change by an operator clears `returned`.
        #expect(bench.sent.withLock { $0 }.isEmpty)
        try bench.directory.setEnforcement(.optional, for: "shop")
        #expect(try plan(bench).returned == nil)
    }

    @Test(arguments: [false, true]) func manyRejectionsSendAnAlertAndChangeNothing(returns: Bool) throws {
        var plan = required(10)
        if !returns { plan.autoReturn = nil }
        let bench = try bench(plan, sendsAlerts: true)
        bench.see(99, rejected: 99)
        bench.advance(after: 1_000)
        #expect(bench.sent.withLock { $0.isEmpty })
        bench.see(1_000, rejected: 1_000)
        for _ in 0..<100 { bench.advance(after: 1_000) }
        #expect(try self.plan(bench).state == .required && bench.changes.withLock { $0 } == 0)
        let alert = try #require(bench.sent.withLock { $0 }.first)
        let body = try #require(try JSONSerialization.jsonObject(with: Data(alert.body)) as? [String: Any])
        #expect(body["type"] as? String == "enforcement.rejecting")
        #expect((body["data"] as? [String: Any])?["rejected_percent"] as? Double == 100)
        // The alert repeats once an hour.
        #expect(bench.sent.withLock { $0.count } == 1)
        bench.advance(after: 60 * minute)
        #expect(bench.sent.withLock { $0.count } == 2)
        // Setting the clock back suppresses neither the alert nor its retry.
        bench.outcome.withLock { $0 = .rejected("it answered 500") }
        bench.advance(after: -24 * 60 * minute)
        #expect(bench.sent.withLock { $0.count } == 3)
        bench.advance(after: -24 * 60 * minute)
        #expect(Set(bench.sent.withLock { $0.map(\.id) }).count == 4)
        #expect(bench.sent.withLock { $0.map(\.attempt) } == [1, 1, 1, 2, 1])
    }

    @Test func lostTokensAreCountedOncePerUserAndOnlyIfEverValid() {
        var known = KnownTokens()
        func sum() -> [Int] { [known.sum(since: 1_000).users, known.sum(since: 1_000).lost] }
        known.note(1, of: "jane", .accepted, nil, atMilliseconds: 500)
        known.note(2, of: "john", .accepted, nil, atMilliseconds: 1_500)
        #expect(sum() == [1, 0])
        // Tokens that were never accepted, or that fail for a reason other than their expiry or key, do not count.
        for code in [
            AuthErrorCode.missingToken, .decodingError, .incorrectAlgorithm, .noMatchingPublicKeys, .expired,
        ] { known.note(9, of: "jane", .rejected, code, atMilliseconds: 1_600) }
        for code in [AuthErrorCode.subjectMismatch, .payloadUserIDMismatch, .revoked] {
            known.note(1, of: "jane", .rejected, code, atMilliseconds: 1_600)
        }
        #expect(sum() == [1, 0])
        // An expired token sent for several user ids counts as one user.
        for name in ["jane", "ann", "bob"] {
            known.note(1, of: name, .rejected, .expired, atMilliseconds: 1_700)
            known.note(1, of: name, .rejected, .noMatchingPublicKeys, atMilliseconds: 1_700)
        }
        #expect(sum() == [2, 1])
        // An accepted new token clears the loss.
        known.note(3, of: "jane", .accepted, nil, atMilliseconds: 1_800)
        #expect(sum() == [2, 0])
    }

    @Test func aFullTableOfUsersIsSweptAtMostOnceAMinute() {
        var known = KnownTokens()
        let hour = 60 * minute
        func users(_ since: Int64) -> Int { known.sum(since: since).users }
        for number in 0..<100_000 {
            known.note(UInt64(number), of: "\(number)", .accepted, nil, atMilliseconds: start)
        }
        known.note(1, of: "jane", .accepted, nil, atMilliseconds: start + hour - 1)
        #expect(users(start) == 100_000)
        #expect(users(start + 1_000) == 0)
        // All other users are outside the window, but the last sweep was a moment ago.
        known.note(1, of: "jane", .accepted, nil, atMilliseconds: start + hour + 1)
        #expect(users(start + 1_000) == 0)
        known.note(1, of: "jane", .accepted, nil, atMilliseconds: start + hour + minute)
        #expect(users(start + minute) == 1)
    }

    /// Compares with a model that checks every user.
    @Test func countsByTheSecondEqualCountsOverAllUsers() {
        var random = SeededGenerator(seed: 7)
        var known = KnownTokens()
        var users: [Int: (seen: Int64, hasLost: Bool)] = [:]
        var now = start
        for round in 0..<20_000 {
            now += Int64.random(in: -500...2_000, using: &random)
            let user = Int.random(in: 0..<300, using: &random)
            let isLost = users[user] != nil && Bool.random(using: &random)
            known.note(
                UInt64(user), of: "\(user)", isLost ? .rejected : .accepted, isLost ? .expired : nil,
                atMilliseconds: now)
            users[user] = (now, isLost)
            guard round % 200 == 0 else { continue }
            for minutes: Int64 in [0, 5, 60] {
                let since = now / 1_000 * 1_000 - minutes * minute
                let seen = users.values.filter { $0.seen >= since && $0.seen < since + 60 * minute + 1_000 }
                let sum = KnownTokens.Sum(users: seen.count, lost: seen.filter(\.hasLost).count)
                #expect(known.sum(since: since) == sum)
            }
        }
    }

    @Test func enforcementPlansAreReadAgainOnlyAfterAChange() throws {
        let count = Lock(0)
        let database = HookedDatabase(
            try place.openControl(as: .schedule).database, willRead: { count.withLock { $0 += 1 } })
        let bench = try Bench(
            place, at: start, watched: AppDirectory(database, actor: .schedule, now: { Date() }))
        _ = try bench.directory.createApp(id: "shop")
        func reads() -> Int {
            count.withLock { $0 = 0 }
            bench.advance()
            return count.withLock { $0 }
        }
        // One read loads the plans, the other the due alerts.
        #expect(reads() == 2)
        #expect(reads() == 1)
        try bench.directory.setEnforcementPlan(required(10), for: "shop", at: start)
        #expect(reads() == 2)
        #expect(reads() == 1)
        bench.see(users: 200, lost: 200)
        bench.advance()
        #expect(try plan(bench).state == .optional)
        #expect(reads() == 2)
        #expect(reads() == 1)
    }

    @Test func failuresFromTheFutureAreNotCounted() {
        let day = 24 * 60 * minute
        var known = KnownTokens()
        var recent = RecentVerdicts()
        for (time, verdict) in [(start, VerdictKind.accepted), (start + day, .rejected)] {
            known.note(1, of: "jane", verdict, .expired, atMilliseconds: time)
            recent.note(verdict, .required, events: 1, atMilliseconds: time)
        }
        func sums() -> (known: KnownTokens.Sum, recent: RecentVerdicts.Sum) {
            var sum = RecentVerdicts.Sum()
            recent.add(to: &sum, since: start + minute)
            return (known.sum(since: start + minute), sum)
        }
        #expect(sums() == (KnownTokens.Sum(), RecentVerdicts.Sum()))
        known.note(2, of: "john", .accepted, nil, atMilliseconds: start + 2 * minute)
        recent.note(.accepted, .required, events: 1, atMilliseconds: start + 2 * minute)
        #expect(sums().known == KnownTokens.Sum(users: 1, lost: 0))
        // The entry from the future stays ignored when the clock reaches its time.
        #expect(known.sum(since: start + day) == KnownTokens.Sum())
        #expect(sums().recent == RecentVerdicts.Sum(required: 1, rejected: 0, accepted: 1, events: 1))
    }

    @Test func aSwitchThatWasMadeWhileTheClockWasAheadIsWatched() throws {
        let bench = try bench(EnforcementPlan())
        let year = 365 * 24 * 60 * minute
        try bench.directory.setEnforcementPlan(required(10), for: "shop", at: start + year)
        #expect(try plan(bench).sinceMilliseconds == start + year)
        bench.advance()
        #expect(bench.askedSince.withLock { $0 } == start - 5 * minute)
    }

    // Users beyond the ramp get a warning instead of a rejection, which counts as a loss too.
    @Test(arguments: [AuthErrorCode.expired, .noMatchingPublicKeys])
    func aWarningForAUserBeyondTheRampCountsAsALostToken(code: AuthErrorCode) {
        var known = KnownTokens()
        known.note(1, of: "jane", .accepted, nil, atMilliseconds: 1_000)
        known.note(1, of: "jane", .acceptedWithWarning, .subjectMismatch, atMilliseconds: 1_100)
        #expect(known.sum(since: 0) == KnownTokens.Sum(users: 1, lost: 0))
        known.note(1, of: "jane", .acceptedWithWarning, code, atMilliseconds: 1_200)
        #expect(known.sum(since: 0) == KnownTokens.Sum(users: 1, lost: 1))
    }

    @Test func anOptionalAppIsNotReturnedAndCausesNoAlert() throws {
        var plan = required(10)
        plan.state = .optional
        plan.rampPercent = 100
        let bench = try bench(plan, sendsAlerts: true)
        bench.see(1_000, rejected: 1_000)
        bench.see(users: 1_000, lost: 1_000)
        bench.advance(after: 1_000)
        #expect(bench.changes.withLock { $0 } == 0 && bench.sent.withLock { $0.isEmpty })
    }

    @Test func alertsThatTheSenderHasNoSlotForWaitWithoutAnAttempt() throws {
        let bench = try bench(EnforcementPlan(), sendsAlerts: true)
        for _ in 0..<3 { _ = try bench.directory.alerts.queue(["type": "test"], of: "shop", at: start) }
        for (slots, sent) in [(0, 0), (2, 2), (0, 2), (2, 3)] {
            bench.freeSlots.withLock { $0 = slots }
            bench.advance(after: 1_000)
            #expect(bench.sent.withLock { $0.map(\.attempt) } == Array(repeating: 1, count: sent))
        }
    }

    @Test func anAlertIsRetriedUntilAcceptedAlsoAfterARestart() throws {
        let bench = try bench(required(10, minimum: 1), sendsAlerts: true)
        bench.see(users: 10, lost: 10)
        bench.outcome.withLock { $0 = .rejected("it answered 500") }
        bench.advance()
        let first = try #require(bench.sent.withLock { $0 }.first)
        let body = try #require(try JSONSerialization.jsonObject(with: Data(first.body)) as? [String: Any])
        #expect(body["type"] as? String == "enforcement.returned")
        #expect((body["data"] as? [String: Any])?["rejected_percent"] as? Double == 100)
        bench.advance(after: 29_999)
        #expect(bench.sent.withLock { $0.count } == 1)

        let second = try Bench(place, at: start + 30_000)
        second.outcome.withLock { $0 = .rejected("it answered 500") }
        second.advance()
        let again = try #require(second.sent.withLock { $0 }.first)
        #expect(again.id == first.id && again.body == first.body && again.attempt == 2)
        second.outcome.withLock { $0 = .delivered }
        second.advance(after: 120_000)
        #expect(second.sent.withLock { $0.map(\.attempt) } == [2, 3])
        second.advance(after: 24 * 60 * minute)
        #expect(second.sent.withLock { $0.count } == 2)
    }

    @Test(.onSQLite("its trigger"), arguments: [true, false])
    func aFinishedAlertIsNotRepeatedWhileItsRowCannotBeDeleted(isDelivered: Bool) throws {
        let bench = try bench(required(10, minimum: 1), sendsAlerts: true)
        bench.see(users: 10, lost: 10)
        let attempts = isDelivered ? 1 : 6
        if !isDelivered { bench.outcome.withLock { $0 = .rejected("it answered 500") } }
        let connection = try place.connection(to: "control")
        try connection.run(
            "CREATE TRIGGER kept BEFORE DELETE ON alert BEGIN SELECT RAISE(ABORT, 'kept'); END")
        for _ in 0..<10 { bench.advance(after: 6 * 60 * minute) }
        #expect(bench.sent.withLock { $0.map(\.attempt) } == Array(1...attempts))
        try connection.run("DROP TRIGGER kept")
        bench.advance()
        #expect(try connection.all("SELECT id FROM alert", []) { $0.text(0) }.isEmpty)
        #expect(bench.sent.withLock { $0.count } == attempts)
    }

    @Test func aGatewayReturnsAnAppToOptionalAndSendsASignedAlert() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .required)
        let first = try WebhookServer { _ in .answer(204) }
        defer { first.close() }
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        _ = try fixture.apps.setAlertWebhook(
            url: "http://127.0.0.1:\(first.port)/alerts", secret: secret,
            allowsPrivateAddresses: true, for: "shop")
        try fixture.apps.setEnforcementPlan(required(100, minimum: 6), for: "shop")
        try fixture.gateway.refreshApps()
        let connection = try fixture.client()
        let users = (0..<500).map { "user-\($0)" }
            .filter { EnforcementPlan.isRamped($0, of: "shop", percent: 50) }.prefix(6)
        func send(_ user: String, _ token: String?) -> Int? {
            let credentials = token.map { ["Authorization": "Bearer \($0)"] } ?? [:]
            return connection.post(
                batch(trackEvent(UUID().uuidString, user: user)),
                headers: credentials.merging(["X-Write-Key": fixture.writeKey]) { $1 })?.status
        }
        // Requests without a token, or with tokens of an unknown key, raise an alert but change nothing.
        let stranger = try SharedKeys.stranger()
        for number in 0..<60 {
            let user = "\(users[number % users.count])"
            #expect(send(user, number < 30 ? nil : try fixture.token(for: user, key: stranger)) == 401)
        }
        let told = try #require(first.request())
        #expect(String(decoding: told.body, as: UTF8.self).contains(#""type":"enforcement.rejecting""#))
        let receiver = try WebhookServer { _ in .answer(204) }
        defer { receiver.close() }
        _ = try fixture.apps.setAlertWebhook(
            url: "http://127.0.0.1:\(receiver.port)/alerts", secret: secret,
            allowsPrivateAddresses: true, for: "shop")
        #expect(try fixture.apps.enforcementPlan(of: "shop").state == .required)
        // The key of all users is deleted.
        let tokens = try users.map { try fixture.token(for: $0) }
        for (user, token) in zip(users, tokens) { #expect(send(user, token) == 200) }
        let other = try fixture.apps.addKey(stranger.publicKey.pem, description: "another", to: "shop")
        try fixture.apps.makePrimary(keyID: other.id, of: "shop")
        try fixture.apps.deleteKey(
            keyID: try #require(try fixture.apps.app(id: "shop").keys.first { $0.id != other.id }).id,
            of: "shop")
        try fixture.gateway.refreshApps()
        for (user, token) in zip(users, tokens) { #expect(send(user, token) == 401) }
        let request = try #require(receiver.request())
        let id = try #require(request.headers["webhook-id"])
        let timestamp = try #require(request.headers["webhook-timestamp"].flatMap(Int64.init))
        let expected = WebhookSignature.headers(
            id: id, timestamp: timestamp, body: request.body,
            keys: [try #require(WebhookSignature.key(secret))])
        #expect(
            request.headers["webhook-signature"] == expected.first { $0.name == "webhook-signature" }?.value)
        #expect(try fixture.apps.enforcementPlan(of: "shop").returned != nil)
        let answer = connection.post(batch(trackEvent("m-7")), headers: ["X-Write-Key": fixture.writeKey])
        #expect(answer?.status == 200)
    }

    @Test func aHigherRampPercentageIncludesAllUsersOfALowerOne() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .required)
        let connection = try fixture.client()
        func rejected(at percent: Int) throws -> Set<Int> {
            var plan = EnforcementPlan()
            plan.state = .required
            plan.rampPercent = percent
            try fixture.apps.setEnforcementPlan(plan, for: "shop")
            try fixture.gateway.refreshApps()
            return Set(
                (0..<200).filter { number in
                    let event = trackEvent(UUID().uuidString, user: "user-\(number)")
                    let answer = connection.post(batch(event), headers: ["X-Write-Key": fixture.writeKey])
                    return answer?.status == 401
                })
        }
        let few = try rejected(at: 20)
        let more = try rejected(at: 60)
        #expect((20...65).contains(few.count) && (95...145).contains(more.count))
        #expect(few.isSubset(of: more))
        #expect(try rejected(at: 20) == few)
        #expect(try rejected(at: 100).count == 200)
    }
}
