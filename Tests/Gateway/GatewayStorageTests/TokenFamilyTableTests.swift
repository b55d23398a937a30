import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import Foundation
import GatewayModel
import GatewayTestSupport
import TestSupport
import Testing

@testable import GatewayStorage

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct TokenFamilyTableTests {
    private let place: TestStorage
    private let key = [UInt8](repeating: 7, count: 32)

    init() throws { place = try TestStorage() }

    private func store() throws -> TokenFamilyStore {
        try place.open().openTokenFamilies(refreshKey: key)
    }

    private func open(
        _ store: TokenFamilyStore, client: String? = nil, lifetime: Int = 100_000, at seconds: Int64 = 0
    ) throws -> RefreshToken {
        var rules = TokenRules()
        rules.refreshSeconds = lifetime
        let opening = TokenFamilyTable.Opening(
            appID: "shop", subject: "user-1", clientID: client, rules: rules)
        return try store.perform { table in
            try table.open(opening, at: seconds * 1000).1
        }
    }

    private func exchange(
        _ token: RefreshToken, _ store: TokenFamilyStore, client: String? = nil, scope: String? = nil,
        at seconds: Int64 = 0, rules: TokenRules? = TokenRules()
    ) throws -> TokenFamilyTable.Exchange {
        return try store.perform { table in
            try table.exchange(
                token,
                .init(
                    clientID: client, now: seconds * 1000, rules: { _ in rules },
                    scope: scope))
        }
    }

    private func granted(_ exchange: TokenFamilyTable.Exchange) throws -> RefreshToken {
        guard case .granted(_, let token) = exchange else {
            Issue.record("rejected: \(exchange)")
            throw CancellationError()
        }
        return token
    }

    private func rejection(_ exchange: TokenFamilyTable.Exchange) -> TokenFamilyTable.Rejection? {
        if case .rejected(let rejection) = exchange { rejection } else { nil }
    }

    @Test func aForwardClockJumpDeletesNoSpentAssertions() throws {
        let store = try store()
        let (hour, year): (Int64, Int64) = (3_600_000, 31_536_000_000)
        let assertion = SpentAssertion(clientID: "c", id: "a", expiresMilliseconds: hour)
        let clock = Lock(RetentionClock())
        #expect(try store.perform { try $0.spend(assertion) })
        for time in [0, hour, year] { #expect(try store.perform { try $0.prune(at: time, by: clock) }) }
        #expect(try !store.perform { try $0.spend(assertion) })
        let later = Lock(RetentionClock())
        #expect(try store.perform { try $0.prune(at: 48 * hour, by: later) })
        #expect(try store.perform { try $0.spend(assertion) })
    }

    @Test func aJobThatFailsDoesNotFailTheOthersOfItsCommit() throws {
        struct Damage: Error {}
        let store = try store()
        let (isQueued, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let failures = Lock<[Bool]>([])
        // Blocks the queue until the next jobs share a commit. Signals again, because the store may rerun jobs.
        store.submit(
            { _ in
                isQueued.wait()
                isQueued.signal()
            }, completion: { _ in })
        for isDamaged in [false, true, false] {
            store.submit(
                { table in
                    if isDamaged { throw Damage() }
                    _ = try table.spend(SpentAssertion(clientID: "c", id: "a", expiresMilliseconds: 1))
                },
                completion: { result in
                    if case .failure = result { failures.withLock { $0.append(isDamaged) } }
                    isDone.signal()
                })
        }
        isQueued.signal()
        for _ in 0..<3 { isDone.wait() }
        #expect(failures.withLock { $0 } == [true])
        #expect(
            try !store.perform {
                try $0.spend(SpentAssertion(clientID: "c", id: "a", expiresMilliseconds: 1))
            })
    }

    /// More token families than one transaction deletes.
    @Test func expiredSessionsAreDeletedInBoundedBatchesUntilNoneIsLeft() throws {
        let store = try store()
        let expired = TokenFamilyTable.prunedRows * 2 + 1
        var rules = TokenRules()
        rules.refreshSeconds = 100_000
        try store.perform { [rules] table in
            for _ in 0..<expired {
                _ = try table.open(.init(appID: "shop", subject: "user-1", rules: rules), at: 0)
            }
        }
        let kept = try open(store, at: 10_000_000)
        let now: Int64 = 10_000_000_000
        let clock = Lock(RetentionClock(now))
        var left: [Int] = []
        var isDone = false
        while !isDone {
            isDone = try store.perform { try $0.prune(at: now, by: clock) }
            left.append(
                try store.perform { try $0.families(of: "shop", subject: nil, limit: 10_000).count })
        }
        #expect(left == [expired + 1 - 500, expired + 1 - 1_000, 1])
        #expect(try store.perform { try $0.family(id: kept.familyID) } != nil)
    }

    /// Without an index, each deletion of expired rows would read every unexpired row of the table.
    @Test(.onSQLite("its query plans"), arguments: ["used_assertion", "revoked_access_token", "session"])
    func expiredRowsAreFoundByAnIndex(table: String) throws {
        _ = try store()
        let plan = try place.connection(to: "tokens").all(
            "EXPLAIN QUERY PLAN SELECT 1 FROM \(table) WHERE expires_ms < 5 LIMIT 500"
        ) { $0.text(3) }
        #expect(plan.count == 1 && plan[0].hasPrefix("SEARCH") && plan[0].contains("INDEX"), "\(plan)")
    }

    @Test func expiredAssertionsAndRevocationsAreDeletedAndOthersKept() throws {
        let store = try store()
        let (day, count): (Int64, Int64) = (86_400_000, 1_200)
        try store.perform { table in
            for number in 0..<count {
                let expires = number % 2 == 0 ? 1 : 100 * day
                _ = try table.spend(
                    SpentAssertion(clientID: "c", id: "a\(number)", expiresMilliseconds: expires))
            }
        }
        let clock = Lock(RetentionClock(10 * day))
        var calls = 1
        while try !store.perform({ try $0.prune(at: 10 * day, by: clock) }) { calls += 1 }
        #expect(calls == 2)
        let left = try place.connection(to: "tokens").first("SELECT count(*) FROM used_assertion") {
            $0.int(0)
        }
        #expect(left == Int(count) / 2)
    }

    @Test func everyExchangeGivesANewToken() throws {
        let store = try store()
        var token = try open(store)
        var texts = Set([token.text])
        for number in 1...5 {
            token = try granted(exchange(token, store))
            #expect(token.generation == UInt32(number))
            #expect(texts.insert(token.text).inserted)
        }
    }

    // The store is opened again, as after a crash between commit and response.
    @Test func aParentTokenGetsTheActiveTokenAgainAfterARestart() throws {
        let first = try open(store())
        let second = try granted(exchange(first, store()))
        let again = try granted(exchange(first, store(), at: 59))
        #expect(again.text == second.text)
        let third = try granted(exchange(again, store(), at: 901))
        #expect(third.generation == 2)
    }

    @Test func concurrentExchangesGetTheSameToken() async throws {
        let store = try store()
        let token = try open(store)
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<50 { group.addTask { try granted(exchange(token, store)).text } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(texts.count == 1)
    }

    private func isReused(_ exchange: TokenFamilyTable.Exchange) -> Bool {
        if case .rejected(.reused) = exchange { true } else { false }
    }

    /// Genuine tokens that are missing in the database, as after restoring a backup, do not count as reuse.
    @Test func aRefreshTokenMissingInTheDatabaseDoesNotEndItsSession() throws {
        let store = try store()
        let first = try open(store)
        let second = try granted(exchange(first, store))
        let other = first.child(nonce: [UInt8](repeating: 1, count: 32), key: key)
        #expect(other.generation == second.generation)
        #expect(rejection(try exchange(other, store)) == .unknown)
        let later = second.child(nonce: [UInt8](repeating: 1, count: 32), key: key)
        #expect(rejection(try exchange(later, store)) == .unknown)
        #expect(try granted(exchange(second, store)).generation == 2)
    }

    @Test func waitingSessionRequestsAreLimited() throws {
        let store = try store()
        let (begun, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let done = DispatchSemaphore(value: 0)
        let rejections = Lock<[StoreFailure.Reason]>([])
        func submit(_ work: @escaping @Sendable () -> Void = {}) {
            store.submit({ _ in work() }) { result in
                if case .failure(let failure) = result { rejections.withLock { $0.append(failure.reason) } }
                done.signal()
            }
        }
        submit {
            begun.signal()
            goOn.wait()
        }
        try begun.waitForSignal()
        for _ in 0..<TokenFamilyStore.capacity { submit() }
        #expect(rejections.withLock { $0 } == [])
        submit()
        #expect(rejections.withLock { $0 } == [.overloaded])
        goOn.signal()
        for _ in 0..<TokenFamilyStore.capacity + 2 { try done.waitForSignal() }
        submit()
        try done.waitForSignal()
        #expect(rejections.withLock { $0 } == [.overloaded])
    }

    /// A public client has no secret. It sends the app's id as its client id.
    @Test func aClientCannotEndASessionOfAnotherClientOrApp() throws {
        let store = try store()
        let token = try open(store)
        func revoke(client: String? = nil, publicClient: String? = nil) throws -> TokenFamilyTable.Revocation
        {
            try store.perform {
                try $0.revoke(token, clientID: client, publicClientID: publicClient, at: 0)
            }
        }
        for (client, publicClient) in [(nil, "blog"), ("c", nil), ("c", "shop")] as [(String?, String?)] {
            guard case .rejected(.otherClient) = try revoke(client: client, publicClient: publicClient) else {
                Issue.record("\(client ?? "none"), \(publicClient ?? "none")")
                continue
            }
        }
        guard case .revoked(token.familyID) = try revoke(publicClient: "shop") else {
            Issue.record("its own client cannot end it")
            return
        }
    }

    @Test func aParentTokenReusedAfterTheReuseWindowEndsTheSession() throws {
        let store = try store()
        let first = try open(store)
        let second = try granted(exchange(first, store, at: 10))
        #expect(isReused(try exchange(first, store, at: 70)))
        #expect(rejection(try exchange(second, store, at: 70)) == .revoked)
        let family = try store.perform {
            try $0.family(id: first.familyID)
        }
        #expect(family?.revocation == .reuse)
    }

    @Test func settingTheClockBackDoesNotExtendTheReuseWindow() throws {
        let store = try store()
        let first = try open(store)
        _ = try granted(exchange(first, store, at: 3_700))
        #expect(isReused(try exchange(first, store, at: 100)))
    }

    @Test func aStolenRefreshTokenSoonEndsTheSession() throws {
        let store = try store()
        var (owner, thief) = (try open(store), nil as RefreshToken?)
        thief = owner
        var rounds = 0
        for round in 1...50 {
            let time = Int64(round) * 600
            guard case .granted(_, let next) = try exchange(owner, store, at: time) else { break }
            owner = next
            guard let stolen = thief, case .granted(_, let copy) = try exchange(stolen, store, at: time + 300)
            else { break }
            thief = copy
            rounds += 1
        }
        #expect(rounds == 0)
        let id = owner.familyID
        #expect(try store.perform { try $0.family(id: id) }?.revocation == .reuse)
    }

    // Rows of old generations are deleted. The token's MAC still proves that it is genuine.
    @Test func aReusedTokenWhoseRowIsDeletedEndsTheSession() throws {
        let store = try store()
        let first = try open(store, lifetime: 10_000)
        var token = first
        for number in 1...20 { token = try granted(exchange(token, store, at: Int64(number) * 100)) }
        let rows = try store.perform {
            try $0.connection.first("SELECT count(*) FROM refresh_token") { $0.int(0) }
        }
        #expect(try #require(rows) < 8)
        guard case .reused = rejection(try exchange(first, store, at: 2_001)) else {
            Issue.record("the reuse was not detected")
            return
        }
    }

    @Test func aSessionThatIsNotUsedExpires() throws {
        let store = try store()
        let token = try open(store, lifetime: 100)
        #expect(rejection(try exchange(token, store, at: 100)) == .expired)
        var short = TokenRules()
        short.refreshSeconds = 50
        let next = try granted(exchange(token, store, at: 99, rules: short))
        #expect(rejection(try exchange(next, store, at: 149, rules: short)) == .expired)
        #expect(rejection(try exchange(next, store, at: 148, rules: short)) == nil)
    }

    @Test func aSessionThatIsUsedEndsWithItsAbsoluteLifetime() throws {
        let store = try store()
        var rules = TokenRules()
        rules.absoluteSeconds = 1_000
        var token = try open(store)
        for time in stride(from: Int64(100), to: 1_000, by: 100) {
            token = try granted(exchange(token, store, at: time, rules: rules))
        }
        let id = token.familyID
        let family = try store.perform { try $0.family(id: id) }
        #expect(family?.expiresMilliseconds == 1_000_000)
        #expect(rejection(try exchange(token, store, at: 999, rules: rules)) == nil)
        #expect(rejection(try exchange(token, store, at: 1_000, rules: rules)) == .expired)
    }

    @Test func aShorterAbsoluteLifetimeAppliesToExistingSessions() throws {
        let store = try store()
        let token = try open(store)
        var rules = TokenRules()
        rules.absoluteSeconds = 1_000
        #expect(rejection(try exchange(token, store, at: 1_000, rules: rules)) == .expired)
        #expect(rejection(try exchange(token, store, at: 999, rules: rules)) == nil)
    }

    @Test func aSessionBelongsToItsClientAndItsApp() throws {
        let store = try store()
        let token = try open(store, client: "client_1")
        #expect(rejection(try exchange(token, store)) == .otherClient)
        #expect(rejection(try exchange(token, store, client: "client_2")) == .otherClient)
        #expect(rejection(try exchange(token, store, client: "client_1", rules: nil)) == .unknown)
        #expect(rejection(try exchange(token, store, client: "client_1", scope: "admin")) == .scope)
        #expect(
            try granted(exchange(token, store, client: "client_1", scope: TokenScope.all)).generation == 1)
    }

    @Test func refreshTokensWithAForgedOrForeignMACAreRejected() throws {
        let token = RefreshToken(family: .random(count: 16), key: key)
        #expect(RefreshToken(token.text, key: key)?.familyID == token.familyID)
        #expect(RefreshToken(token.text, key: [UInt8](repeating: 8, count: 32)) == nil)
        for index in token.text.indices.dropFirst(4) {
            var forged = token.text
            forged.replaceSubrange(index...index, with: forged[index] == "A" ? "B" : "A")
            #expect(RefreshToken(forged, key: key) == nil)
        }
        for text in ["", "csr_", "csr_AAAA", token.text + "A", String(token.text.dropFirst(4))] {
            #expect(RefreshToken(text, key: key) == nil)
        }
        #expect(!"\(token)".contains(token.text.suffix(20)))
    }

    @Test func storedRowsContainNoRefreshToken() throws {
        let store = try store()
        let first = try open(store)
        let second = try granted(exchange(first, store))
        for database in try WholeDatabase.all(of: place, files: ["tokens"]) {
            for token in [first, second] { #expect(try database.tables(with: token.text) == []) }
        }
    }

    @Test func aFailedCommitChangesNothingAndAClosedStoreRejectsRequests() throws {
        let store = try store()
        let token = try open(store)
        #expect(throws: GatewayError.self) {
            try store.perform { table in
                try table.connection.run("UPDATE session SET generation = 9")
                try table.connection.run("no such statement")
            }
        }
        #expect(try granted(exchange(token, store)).generation == 1)
        store.close()
        #expect(throws: GatewayError.self) { try store.perform { _ in } }
    }
}
