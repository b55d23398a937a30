import CountersignCore
import CountersignTesting
import Testing

@testable import CountersignGateway

struct RateLimiterTests {
    private final class Clock: Sendable {
        let nanoseconds = Lock<UInt64>(1_000_000_000_000)

        func advance(milliseconds: UInt64) {
            nanoseconds.withLock { $0 += milliseconds * 1_000_000 }
        }
    }

    @Test func fiveSecondsWorthAtOnceThenTheRate() {
        let clock = Clock()
        let limiter = RateLimiter<String>(rate: 10, now: { clock.nanoseconds.withLock { $0 } })
        for _ in 0..<50 { #expect(limiter.take("a") == .allowed) }
        #expect(limiter.take("a") == .limited(retryAfterSeconds: 1))
        // Each key has a bucket of its own.
        #expect(limiter.take("b") == .allowed)
        clock.advance(milliseconds: 100)
        #expect(limiter.take("a") == .allowed)
        #expect(limiter.take("a") == .limited(retryAfterSeconds: 1))
        clock.advance(milliseconds: 60_000)
        for _ in 0..<50 { #expect(limiter.take("a") == .allowed) }
        #expect(limiter.take("a") == .limited(retryAfterSeconds: 1))
    }

    @Test func memoryOfKeysIsBounded() {
        let clock = Clock()
        let limiter = RateLimiter<Int>(rate: 1, capacity: 10, now: { clock.nanoseconds.withLock { $0 } })
        for _ in 0..<5 { _ = limiter.take(0) }
        #expect(limiter.take(0) == .limited(retryAfterSeconds: 1))
        // While there is room, others do not make it forget; when none is left, it does.
        for key in 1..<10 { #expect(limiter.take(key) == .allowed) }
        #expect(limiter.take(0) == .limited(retryAfterSeconds: 1))
        #expect(limiter.take(10) == .allowed)
        #expect(limiter.take(0) == .allowed)
    }

    @Test func anAddressBehindATrustedProxyIsLimited() throws {
        var limits = GatewayLimits()
        limits.requestsPerSecondPerAddress = 1
        let fixture = try GatewayFixture(enforcement: .disabled, limits: limits) {
            $0.trustedProxies = AddressRange.loopback
        }
        defer { fixture.remove() }
        let connection = try RawConnection(port: fixture.gateway.port)
        func get(_ client: String) -> RawConnection.Answer? {
            connection.send("GET /livez HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: \(client)\r\n\r\n")
            return connection.answer()
        }
        for _ in 0..<5 { #expect(get("192.0.2.1")?.status == 200) }
        // What the client itself wrote before its proxy's entry does not help it.
        let limited = get("198.51.100.9, 192.0.2.1")
        #expect(limited?.status == 429)
        #expect(limited?.json["code"] as? String == "rate_limited")
        #expect(limited?.headers["retry-after"] == "1")
        #expect(limited?.headers["ratelimit-policy"] == #""address";q=5;w=5"#)
        #expect(get("192.0.2.2")?.status == 200)
        // This machine's own requests have no limit.
        for _ in 0..<10 { #expect(connection.get("/livez")?.status == 200) }
    }

    @Test func anAppIsLimitedBeforeItsTokensAreJudged() throws {
        var limits = GatewayLimits()
        limits.requestsPerSecondPerApp = 1
        let fixture = try GatewayFixture(enforcement: .required, limits: limits)
        defer { fixture.remove() }
        let connection = try RawConnection(port: fixture.gateway.port)
        let headers = ["X-Write-Key": fixture.writeKey]
        for _ in 0..<5 { #expect(connection.post(batch(trackEvent("m")), headers: headers)?.status == 401) }
        let limited = connection.post(batch(trackEvent("m")), headers: headers)
        #expect(limited?.status == 429)
        #expect(limited?.headers["ratelimit"] == #""app";r=0;t=1"#)
    }
}
