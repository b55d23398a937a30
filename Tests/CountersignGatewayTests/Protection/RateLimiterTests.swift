import CountersignCore
import CountersignGatewayTesting
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
        let connection = try RawConnection(port: fixture.gateway.port)
        // Sent before the first is answered, so that they do not depend on how fast that is.
        func get(_ client: String, times: Int) -> [TestAnswer] {
            let request = "GET /livez HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: \(client)\r\n\r\n"
            connection.send(String(repeating: request, count: times))
            return (0..<times).compactMap { _ in connection.answer() }
        }
        // What the client itself wrote before its proxy's entry does not help it.
        let answers = get("198.51.100.9, 192.0.2.1", times: 30)
        #expect(answers.prefix(5).allSatisfy { $0.status == 200 })
        let limited = try #require(answers.first { $0.status == 429 })
        #expect(limited.json["code"] as? String == "rate_limited")
        #expect(limited.headers["retry-after"] == "1")
        #expect(limited.headers["ratelimit-policy"] == #""address";q=5;w=5"#)
        #expect(get("192.0.2.2", times: 1).first?.status == 200)
        // Without the field it may be the proxy that forgot it: such requests share one limit.
        connection.send(String(repeating: "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", count: 30))
        #expect((0..<30).compactMap { _ in connection.answer() }.contains { $0.status == 429 })
    }

    @Test func anAppIsLimitedBeforeItsTokensAreJudged() throws {
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
