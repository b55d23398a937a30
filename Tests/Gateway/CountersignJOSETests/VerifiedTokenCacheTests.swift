import CountersignCore
import Testing

@testable import CountersignJOSE
@testable import CountersignJSON

/// A cached result never accepts more than a fresh verification.
struct VerifiedTokenCacheTests {
    private let cache = VerifiedTokenCache(maximumBytes: 1 << 20)

    private func verifier(
        _ keys: [SigningKey] = [TestKeys.rsa], _ policy: ClaimsPolicy = ClaimsPolicy()
    ) -> TokenVerifier {
        TokenVerifier(keys: KeyRing(keys), policy: policy, cache: cache)
    }

    private let token = try? Case(
        claims: #"{"sub":"user-1","exp":1800000600,"iat":1799999990,"nbf":1799999990,"aud":"a"}"#
    ).token

    private func codes(
        _ verifier: TokenVerifier, user: String = "user-1", at now: Double = Case.now
    ) -> [Int] {
        verifier.verify(token, userID: user, at: now).faults.map(\.code.rawValue)
    }

    @Test func aCacheHitHasTheResultOfTheFirstVerification() {
        let verifier = verifier()
        let first = verifier.verify(token, userID: "user-1", at: Case.now)
        #expect(cache.count == 1)
        let second = verifier.verify(token, userID: "user-1", at: Case.now)
        #expect(second.isAccepted && second.matchedKeyID == first.matchedKeyID)
        #expect(second.claims?.json == first.claims?.json)
        #expect(second.warnings == first.warnings)
        #expect(cache.count == 1 && cache.misses == 1)
    }

    @Test func aCachedTokenIsCheckedAgainstTheUserOfEachRequest() {
        let verifier = verifier()
        #expect(codes(verifier) == [])
        #expect(codes(verifier, user: "user-2") == [21])
        let mixed = verifier.verify(token, userID: "user-1", payloadUserIDs: ["user-2"], at: Case.now)
        #expect(mixed.code == .payloadUserIDMismatch && mixed.claims == nil)
    }

    @Test func aCachedTokenIsCheckedAgainstTheCurrentTime() {
        let verifier = verifier()
        #expect(codes(verifier) == [])
        #expect(codes(verifier, at: Case.now - 100) == [30, 31])
        #expect(codes(verifier) == [])
        #expect(codes(verifier, at: Case.now + 630) == [22])
        #expect(codes(verifier) == [])
        #expect(cache.count == 1 && cache.misses == 1)
    }

    @Test func aVerifierWithOtherKeysOrPolicySharesNoCacheEntries() {
        let old = verifier()
        #expect(codes(old) == [])
        #expect(codes(verifier([TestKeys.otherRSA])) == [27])
        #expect(codes(verifier([])) == [27])
        #expect(codes(verifier([TestKeys.rsa], ClaimsPolicy(algorithms: [.ps256]))) == [24])
        #expect(codes(verifier([TestKeys.rsa], ClaimsPolicy(audiences: ["b"]))) == [33])
        #expect(codes(verifier([TestKeys.rsa], ClaimsPolicy(maximumLifetime: 60))) == [32])
        #expect(codes(old) == [])
    }

    @Test func cacheEntriesAreRemovedWithTheirVerifier() {
        #expect(codes(verifier()) == [])
        #expect(cache.count == 0 && cache.byteCount == 0)
    }

    @Test func aTokenWithOneChangedCharacterIsNotACacheHit() throws {
        let verifier = verifier()
        let token = try #require(token)
        #expect(codes(verifier) == [])
        for offset in stride(from: 0, to: token.utf8.count, by: 41) {
            var bytes = Array(token.utf8)
            bytes[offset] = bytes[offset] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let report = verifier.verify(
                String(decoding: bytes, as: UTF8.self), userID: "user-1", at: Case.now)
            #expect(!report.isAccepted)
        }
        #expect(cache.count == 1)
    }

    @Test func cacheKeysAreTheWholeTokenAndTheVerifier() throws {
        let trusted = try emptyToken()
        let owner: UInt64 = 7
        cache.insert(trusted, for: key("first", owner))
        func isFound(_ text: String, owner: UInt64) -> Bool { cache.find(key(text, owner)) != nil }
        #expect(isFound("first", owner: owner))
        #expect(
            !isFound("other", owner: owner) && !isFound("firs", owner: owner) && !isFound("first", owner: 8))
    }

    private func emptyToken() throws -> TrustedToken {
        let claims = try StrictJSONParser(maximumBytes: 100).parse(bytes: Array("{}".utf8)) {
            Claims($0, json: UnsafeRawBufferPointer(start: nil, count: 0))
        }
        return TrustedToken(claims: claims, entry: 0, typeIsMissing: false)
    }

    private func key(_ text: String, _ owner: UInt64 = 7) -> VerifiedTokenCache.Key {
        Array(text.utf8).withUnsafeBufferPointer { VerifiedTokenCache.key($0, owner: owner) }
    }

    @Test func theCacheHoldsAsManyTokensAsFit() throws {
        let trusted = try emptyToken()
        let small = VerifiedTokenCache(maximumBytes: 20 * 512)
        let users = (0..<20).map { key("user-\($0)") }
        for user in users { small.insert(trusted, for: user) }
        // These steps and 20 have no common factor, so each order has all users.
        for step in [3, 7, 19] {
            for index in 0..<20 { #expect(small.find(users[index * step % 20]) != nil) }
        }
        #expect(small.count == 20 && small.byteCount == 20 * 512)
    }

    @Test func tokensUsedOnceDoNotEvictTokensInUse() throws {
        let trusted = try emptyToken()
        let small = VerifiedTokenCache(maximumBytes: 20 * 512)
        let users = (0..<15).map { key("user-\($0)") }
        for user in users { small.insert(trusted, for: user) }
        for round in 0..<50 {
            for user in users { #expect(small.find(user) != nil, "\(round)") }
            for number in 0..<5 { small.insert(trusted, for: key("once-\(round)-\(number)")) }
        }
        // A full sweep of the clock hand clears the use bits. Unused entries are then evicted.
        for number in 0..<100 { small.insert(trusted, for: key("later-\(number)")) }
        #expect(users.allSatisfy { small.find($0) == nil })
        #expect(small.count == 20)
    }

    @Test func removingAVerifiersTokensFreesTheirSlots() throws {
        let trusted = try emptyToken()
        let small = VerifiedTokenCache(maximumBytes: 20 * 512)
        for number in 0..<20 { small.insert(trusted, for: key("\(number)", UInt64(number % 2))) }
        small.removeAll(of: 1)
        #expect(small.count == 10 && small.byteCount == 10 * 512)
        for number in 0..<10 { small.insert(trusted, for: key("new-\(number)")) }
        #expect((0..<10).allSatisfy { small.find(key("new-\($0)")) != nil })
        #expect((0..<20).allSatisfy { (small.find(key("\($0)", UInt64($0 % 2))) != nil) == ($0 % 2 == 0) })
        // Inserting the same token again does not use a second entry.
        small.insert(trusted, for: key("new-0"))
        #expect(small.count == 20 && small.byteCount == 20 * 512)
        small.removeAll(of: 0)
        small.removeAll(of: 7)
        #expect(small.count == 0 && small.byteCount == 0)
        small.insert(trusted, for: key("again"))
        #expect(small.find(key("again")) != nil)
    }

    /// A cached expired token is rejected for its expiry and for every other fault of the request.
    @Test func anExpiredTokenIsCachedAndNeverAccepted() {
        let verifier = verifier()
        let late = Case.now + 100_000
        #expect(codes(verifier, at: late) == [22])
        #expect(cache.misses == 1 && cache.count == 1)
        let again = verifier.verify(token, userID: "user-1", at: late)
        #expect(again.faults.map(\.code) == [.expired] && again.claims == nil && again.matchedKeyID == "0")
        #expect(codes(verifier, user: "user-2", at: late) == [22, 21])
        #expect(cache.misses == 1)
        // With a corrected clock the cached token is accepted.
        #expect(codes(verifier) == [])
        #expect(cache.misses == 1)
    }

    @Test func tokensWithOtherFaultsAreNotCached() throws {
        let verifier = verifier()
        for claims in [
            #"{"sub":"user-2","exp":1}"#, #"{"sub":"user-1"}"#, #"{"sub":"user-2","exp":1800000600}"#,
            #"{"sub":"user-1","exp":1,"nbf":1900000000}"#,
        ] {
            _ = verifier.verify(try Case(claims: claims).token, userID: "user-1", at: Case.now)
        }
        _ = verifier.verify("a.b.c", userID: "user-1", at: Case.now)
        #expect(cache.count == 0)
    }

    /// A large token must neither evict all others nor start a search for space.
    @Test(arguments: [0, 600, 1_100])
    func tokensOfMoreThanHalfTheCacheAreNotCached(maximumBytes: Int) throws {
        let small = VerifiedTokenCache(maximumBytes: maximumBytes)
        let verifier = TokenVerifier(keys: KeyRing([TestKeys.rsa]), cache: small)
        for _ in 0..<2 {
            #expect(verifier.verify(token, userID: "user-1", at: Case.now).isAccepted)
            #expect(small.count == 0 && small.byteCount == 0)
        }
        #expect(small.misses == 2)
    }

    @Test func memoryIsBounded() throws {
        let small = VerifiedTokenCache(maximumBytes: 12_000)
        let verifier = TokenVerifier(
            keys: KeyRing([TestKeys.ed]), policy: ClaimsPolicy(algorithms: [.edDSA]), cache: small)
        var tokens: [String] = []
        for index in 0..<100 {
            let token = try TestKeys.ed.sign(
                claims: ["sub": "user-1", "exp": 1_800_000_600, "n": .integer(Int64(index))])
            tokens.append(token)
            #expect(verifier.verify(token, userID: "user-1", at: Case.now).isAccepted)
            // The first token is used in each round, so it stays cached.
            let before = small.misses
            #expect(verifier.verify(tokens[0], userID: "user-1", at: Case.now).isAccepted)
            #expect(small.misses == before)
            #expect(small.byteCount <= 12_000)
        }
        #expect(small.count > 5 && small.count < 30)
    }
}
