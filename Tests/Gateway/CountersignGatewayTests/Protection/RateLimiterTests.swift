import CountersignCore
import CountersignGatewayTesting
import GatewayTestSupport
import TestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayHTTP
@testable import GatewayModel

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct RateLimiterTests {
    private final class Clock: Sendable {
        let nanoseconds = Lock<UInt64>(1_000_000_000_000)

        func advance(milliseconds: UInt64) {
            nanoseconds.withLock { $0 += milliseconds * 1_000_000 }
        }
    }

    @Test func aBurstOfFiveSecondsIsAllowedAndThenTheRate() {
        let clock = Clock()
        let limiter = RateLimiter<String>(rate: 10, now: { clock.nanoseconds.withLock { $0 } })
        for _ in 0..<50 { #expect(limiter.take("a") == .allowed) }
        #expect(limiter.take("a") == .limited(retryAfterSeconds: 1))
        // Each key has its own bucket.
        #expect(limiter.take("b") == .allowed)
        clock.advance(milliseconds: 100)
        #expect(limiter.take("a") == .allowed)
        #expect(limiter.take("a") == .limited(retryAfterSeconds: 1))
        clock.advance(milliseconds: 60_000)
        for _ in 0..<50 { #expect(limiter.take("a") == .allowed) }
        #expect(limiter.take("a") == .limited(retryAfterSeconds: 1))
    }

    @Test func requestsOfOtherKeysNeverRefillALimitedKey() {
        let clock = Clock()
        let limiter = RateLimiter<Int>(rate: 1, capacity: 64, now: { clock.nanoseconds.withLock { $0 } })
        for _ in 0..<5 { #expect(limiter.take(0) == .allowed) }
        // 1,000 keys for each bucket.
        for key in 1...64_000 { _ = limiter.take(key) }
        #expect(limiter.take(0) == .limited(retryAfterSeconds: 1))
    }

    /// Compares with an unbounded limiter. There are more keys than buckets, used at random times.
    @Test(arguments: [8, 64, 512]) func keysThatShareABucketGetNoMoreThanWithTheirOwn(capacity: Int) {
        let clock = Clock()
        let limiter = RateLimiter<Int>(
            rate: 2, capacity: capacity, now: { clock.nanoseconds.withLock { $0 } })
        let (cost, depth): (UInt64, UInt64) = (500_000_000, 5_000_000_000)
        var exact: [Int: UInt64] = [:]
        var (allowed, excess) = (0, 0)
        var random = SeededGenerator(seed: 7)
        for _ in 0..<50_000 {
            if Int.random(in: 0..<40, using: &random) == 0 {
                clock.advance(milliseconds: .random(in: 1...3_000, using: &random))
            }
            let key = Int.random(in: 0..<(Bool.random(using: &random) ? 8 : 4 * capacity), using: &random)
            guard limiter.take(key) == .allowed else { continue }
            let now = clock.nanoseconds.withLock { $0 }
            let full = max(exact[key] ?? now, now) + cost
            exact[key] = full
            allowed += 1
            if full - now > depth { excess += 1 }
        }
        #expect(excess == 0 && allowed > 0)
    }

    @Test func fewKeysHaveSeparateBuckets() {
        let clock = Clock()
        let limiter = RateLimiter<Int>(rate: 1, capacity: 4_096, now: { clock.nanoseconds.withLock { $0 } })
        for key in 0..<256 { for _ in 0..<5 { #expect(limiter.take(key) == .allowed) } }
        for key in 0..<256 { #expect(limiter.take(key) == .limited(retryAfterSeconds: 1)) }
        // Full buckets may be replaced.
        clock.advance(milliseconds: 5_000)
        for key in 256..<512 { for _ in 0..<5 { #expect(limiter.take(key) == .allowed) } }
    }

    @Test func theNetworksOfAnIPv6SiteAreLimitedTogether() {
        let clock = Clock()
        let limiter = AddressLimiter(rate: 1, now: { clock.nanoseconds.withLock { $0 } })
        func isAllowed(_ address: String) -> Bool {
            limiter.rejection(
                HTTPRequest(method: "GET", path: "/", clientAddress: address, receivedMilliseconds: 0)) == nil
        }
        // A /64 has a burst of five, a /48 a burst of 80.
        let allowed = (0..<1_000).filter { isAllowed("2001:db8:1:\(String($0, radix: 16))::1") }
        #expect(allowed.count == 80)
        #expect(!isAllowed("2001:db8:1:ffff::1"))
        #expect(isAllowed("2001:db8:2::1"))
        // IPv4 addresses are limited separately, also within one network.
        #expect((0..<200).allSatisfy { isAllowed("192.0.2.\($0)") })
        // Rejected requests of a /64 take no tokens from the /48.
        for _ in 0..<1_000 { _ = isAllowed("2001:db8:3::1") }
        #expect(isAllowed("2001:db8:3:1::1"))
    }

    @Test func anAddressBehindATrustedProxyIsLimited() throws {
        var limits = GatewayLimits()
        limits.requestsPerSecondPerAddress = 1
        let fixture = try GatewayFixture(enforcement: .disabled, limits: limits) {
            $0.trustedProxies = AddressRange.loopback
        }
        let connection = try RawConnection(port: fixture.gateway.port)
        // Sends all requests at once, so that the result does not depend on the speed of the answers.
        func get(_ client: String, times: Int) -> [TestAnswer] {
            let request = "GET /livez HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: \(client)\r\n\r\n"
            connection.send(String(repeating: request, count: times))
            return (0..<times).compactMap { _ in connection.answer() }
        }
        // Addresses that the client itself put into the field are ignored.
        let answers = get("198.51.100.9, 192.0.2.1", times: 30)
        #expect(answers.prefix(5).allSatisfy { $0.status == 200 })
        let limited = try #require(answers.first { $0.status == 429 })
        #expect(limited.json["code"] as? String == "rate_limited")
        #expect(limited.headers["retry-after"] == "1")
        #expect(limited.headers["ratelimit-policy"] == #""address";q=5;w=5"#)
        #expect(get("192.0.2.2", times: 1).first?.status == 200)
        // Requests of a proxy without the field share one limit.
        connection.send(String(repeating: "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", count: 30))
        #expect((0..<30).compactMap { _ in connection.answer() }.contains { $0.status == 429 })
    }

    @Test func anAppIsLimitedBeforeItsTokensAreChecked() throws {
        var limits = GatewayLimits()
        limits.requestsPerSecondPerApp = 1
        let fixture = try GatewayFixture(enforcement: .required, limits: limits)
        let connection = try RawConnection(port: fixture.gateway.port)
        let body = batch(trackEvent("m"))
        let request =
            "POST /v1/batch HTTP/1.1\r\nHost: a\r\nX-Write-Key: \(fixture.writeKey)\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        connection.send(String(repeating: request, count: 30))
        let answers = (0..<30).compactMap { _ in connection.answer() }
        #expect(answers.prefix(5).allSatisfy { $0.status == 401 })
        let limited = try #require(answers.first { $0.status == 429 })
        #expect(limited.headers["ratelimit"] == #""app";r=0;t=1"#)
    }
}
