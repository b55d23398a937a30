import CountersignCore
import CountersignTesting
import Foundation
import Testing

@testable import Countersign
@testable import CountersignBloomreach
@testable import CountersignDelivery

/// The behaviour of credential sources that the engine relies on, tested without an engine.
@Suite(.timeLimit(.minutes(5)))
struct CredentialSourceTests {
    private let bench: Bench
    private let storage: Storage
    private let stored: StoredTokens
    private let shop = UserKey("shop")
    private let ada = UserKey("ada")

    init() throws {
        bench = try Bench()
        storage = bench.makeStorage()
        stored = StoredTokens(store: FileTokenStore(directory: bench.directory), storage: storage, log: nil)
    }

    private func key(_ text: String) throws -> SignedToken { try #require(SignedToken.accessToken(text)) }

    private func token(_ text: String) throws -> SignedToken { try #require(SignedToken(text)) }

    private func userTokens(_ provider: TokenProvider? = nil) -> UserTokenSource {
        UserTokenSource(
            settings: .init(provider: provider, timeout: 30, retry: .network),
            stored: SignedUserTokens(
                tokens: stored, users: StoredUser(directory: bench.directory, writeKey: "wk")),
            clock: bench.clock, random: { 1 })
    }

    private func changes(_ updates: [CredentialUpdate]) -> [Int] {
        updates.compactMap { if case .changed(_, let generation) = $0 { generation } else { nil } }
    }

    @Test func eachNewCredentialIsAGenerationOfItsOwn() async throws {
        let projects = ProjectCredentialSource(stored: stored, clock: bench.clock)
        for (generation, text) in [(1, "one"), (2, "two")] {
            #expect(changes(await projects.take(try key(text), for: shop)) == [generation])
            #expect(changes(await projects.take(try key(text), for: shop)) == [])
            let decision = await projects.credential(for: shop, replacing: nil, post: { _ in })
            #expect(
                decision == .ready(Credential(.scheme("Token"), token: try key(text), generation: generation))
            )
        }
        let users = userTokens()
        for (generation, text) in [(1, "a.b.c"), (2, "d.e.f")] {
            #expect(changes(await users.take(try token(text), for: ada, at: 1)) == [generation])
            let decision = await users.credential(for: ada, replacing: nil, post: { _ in })
            #expect(decision == .ready(Credential(.bearer, token: try token(text), generation: generation)))
        }
        await storage.close()
    }

    @Test func aRejectedKeyIsReplacedByOneThatAnotherProcessStored() async throws {
        let projects = ProjectCredentialSource(stored: stored, clock: bench.clock)
        _ = await projects.take(try key("one"), for: shop)
        await stored.save(try key("two"), of: "shop")
        let before = await projects.credential(for: shop, replacing: nil, post: { _ in })
        #expect(before == .ready(Credential(.scheme("Token"), token: try key("one"), generation: 1)))
        let after = await projects.credential(for: shop, replacing: 1, post: { _ in })
        #expect(after == .ready(Credential(.scheme("Token"), token: try key("two"), generation: 2)))
        await storage.close()
    }

    @Test func removedTokensAreDeletedFromDisk() async throws {
        let (users, projects) = (userTokens(), ProjectCredentialSource(stored: stored, clock: bench.clock))
        _ = await users.take(try token("a.b.c"), for: ada, at: 1)
        await users.removeAll()
        #expect(await stored.text(of: "ada") == .some(nil))
        _ = await projects.take(try key("one"), for: shop)
        await projects.removeAll()
        #expect(await users.token(of: ada) == nil)
        let decision = await projects.credential(for: shop, replacing: nil, post: { _ in })
        #expect(decision == .ready(Credential(.scheme("Token"), token: nil, generation: 0)))
        #expect(await stored.text(of: "shop") == .some(nil))
        await storage.close()
    }

    /// Calls of the app from two threads may arrive out of order.
    @Test func anEarlierTokenOfTheAppIsIgnored() async throws {
        let users = userTokens()
        for (count, text) in [(3, "new.a.a"), (1, "old.a.a")] {
            _ = await users.take(try token(text), for: ada, at: count)
        }
        _ = await users.beginLogOut(of: ada, at: 2)
        _ = await users.endLogOut(of: ada)
        #expect(await users.token(of: ada)?.rawValue == "new.a.a", "signed in again since")
        _ = await users.beginLogOut(of: ada, at: 4)
        _ = await users.take(try token("old.a.a"), for: ada, at: 3)
        _ = await users.endLogOut(of: ada)
        #expect(await users.token(of: ada) == nil)
        #expect(await stored.text(of: "ada") == .some(nil))
        await storage.close()
    }

    /// A token may be handed over while the data is being wiped.
    @Test func aTokenSetAfterAWipeStays() async throws {
        let users = userTokens()
        _ = await users.take(try token("a.a.a"), for: ada, at: 1)
        _ = await users.take(try token("b.b.b"), for: UserKey("bob"), at: 3)
        _ = await users.willRemoveAll(upTo: 2)
        await users.removeAll()
        #expect(await users.token(of: ada) == nil)
        #expect(await users.token(of: UserKey("bob"))?.rawValue == "b.b.b")
        #expect(await stored.text(of: "ada") == .some(nil))
        #expect(await stored.text(of: "bob") == "b.b.b")
        await users.removeAll()
        #expect(await users.token(of: UserKey("bob")) == nil)
        await storage.close()
    }

    @Test func theClockOffsetFollowsTheServersTime() async throws {
        let (users, projects) = (userTokens(), ProjectCredentialSource(stored: stored, clock: bench.clock))
        let date = bench.clock.now + 100
        await users.noteServerTime(date)
        await projects.noteServerTime(date)
        #expect(await users.clockOffset == 100)
        #expect(await projects.clockOffset == 100)
        await storage.close()
    }

    @Test func aProviderFailureIsReportedOnceAndTheProviderIsCalledAgainAfterAResume() async throws {
        // Calls through the protocol, as the engine does. A direct call would choose the asynchronous overload.
        let users: any CredentialSource = userTokens { _ in nil }
        let (works, work) = AsyncStream.makeStream(of: CredentialAction.self)
        var posted = works.makeAsyncIterator()
        func ask() async -> CredentialDecision {
            await users.credential(for: ada, replacing: nil, post: { work.yield($0) })
        }
        #expect(await ask() == .pending)
        let first = try #require(await posted.next())
        _ = await first()
        let none = Credential(.bearer, token: nil, generation: 0)
        guard case .doubtful(none, _) = await ask() else { return #expect(Bool(false), "called twice") }
        // The provider's failure was already reported, so a missing token is not reported again.
        for (code, isNews) in [(AuthErrorCode.missingToken, false), (.expired, true)] {
            #expect(await users.rejected(none, of: ada, .init(code: code, reason: code.reason)) == isNews)
        }
        await users.resume()
        #expect(await ask() == .pending)
        await users.stop()
        await storage.close()
    }
}
