import CountersignCore
import Dispatch
import GatewayHTTP
import GatewayModel
import GatewayTestSupport
import TestSupport
import Testing

/// Single deliveries to servers that answer, redirect, hang or close the connection.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct WebhookDeliveryTests {
    private let pool = OutboundPool()

    private func deliver(
        _ behaviour: WebhookServer.Behaviour, timeout: Int = 60_000, url: String? = nil,
        allowsPrivate: Bool = true, isCancelled: @escaping @Sendable () -> Bool = { false }
    ) throws -> (attempt: WebhookAttempt, requests: [WebhookServer.Request]) {
        let server = try WebhookServer { _ in behaviour }
        defer { server.close() }
        let webhook = PushWebhook(
            url: url?.replacing("PORT", with: "\(server.port)") ?? server.url,
            secret: [UInt8](repeating: 1, count: 24), allowsPrivateAddresses: allowsPrivate)
        let attempt = Lock(WebhookAttempt())
        let done = DispatchSemaphore(value: 0)
        WebhookDelivery(
            body: Array("{}".utf8), headers: [("webhook-id", "msg_1")], webhook: webhook,
            timeoutMilliseconds: timeout, isCancelled: isCancelled
        ).perform(on: pool) { result in
            attempt.withLock { $0 = result }
            done.signal()
        }
        try done.waitForSignal()
        return (attempt.withLock { $0 }, server.requests)
    }

    @Test func aSuccessStatusIsADelivery() throws {
        let (attempt, requests) = try deliver(.answer(202, body: "thanks"))
        #expect(attempt.status == 202 && attempt.error == nil && attempt.answer == Array("thanks".utf8))
        #expect(requests.map(\.body) == [Array("{}".utf8)])
        #expect(requests.first?.headers["webhook-id"] == "msg_1")
        #expect(requests.first?.headers["content-type"] == "application/json")
    }

    @Test(arguments: [(500, "status"), (404, "status"), (410, "gone"), (307, "redirect"), (302, "redirect")])
    func otherStatusesAndRedirectsAreFailures(status: Int, error: String) throws {
        let other = try WebhookServer { _ in .answer(200) }
        defer { other.close() }
        let (attempt, requests) = try deliver(.answer(status, headers: ["Location": other.url]))
        #expect(attempt.status == status && attempt.error == error && requests.count == 1)
        #expect(other.requests.isEmpty)
    }

    @Test(arguments: [("120", 120), ("-1", nil), ("soon", nil)] as [(String, Int?)])
    func retryAfterIsRead(field: String, seconds: Int?) throws {
        let (attempt, _) = try deliver(.answer(503, headers: ["Retry-After": field]))
        #expect(attempt.status == 503 && attempt.retryAfterSeconds == seconds)
    }

    @Test func aHangingReceiverTimesOut() throws {
        let (attempt, requests) = try deliver(.hang, timeout: 300)
        #expect(attempt.status == nil && attempt.error == "timeout" && requests.count == 1)
        #expect(attempt.durationMilliseconds >= 250)
    }

    @Test func aClosedConnectionIsAFailure() throws {
        let (attempt, _) = try deliver(.close)
        #expect(attempt.status == nil && attempt.error == "connection")
    }

    @Test func onlyTheBeginningOfAnEndlessAnswerIsRead() throws {
        let (attempt, _) = try deliver(.endless)
        #expect(attempt.status == 200 && attempt.error == nil)
        #expect(attempt.answer.count == DeliveryRecord.longestAnswer)
    }

    @Test func interimResponsesWithoutEndAreAFailure() throws {
        let (attempt, _) = try deliver(.interim)
        #expect(attempt.error == "long_answer" && attempt.durationMilliseconds < 20_000)
    }

    /// All deliveries share one thread.
    @Test func slowReceiversDelayNoOtherDelivery() throws {
        let servers = try (0..<60).map { number in
            try WebhookServer { _ in number % 2 == 0 ? .hang : .interim }
        }
        defer { for server in servers { server.close() } }
        let isOver = Lock(false)
        defer { isOver.withLock { $0 = true } }
        for server in servers {
            let webhook = PushWebhook(
                url: server.url, secret: [UInt8](repeating: 1, count: 24), allowsPrivateAddresses: true)
            WebhookDelivery(
                body: [], headers: [], webhook: webhook, timeoutMilliseconds: 60_000,
                isCancelled: { isOver.withLock { $0 } }
            ).perform(on: pool) { _ in }
        }
        for server in servers { #expect(server.waitForRequest()) }
        let (attempt, _) = try deliver(.answer(200), timeout: 20_000)
        #expect(attempt.error == nil && attempt.durationMilliseconds < 10_000)
    }

    @Test func aMissingServerIsAFailure() throws {
        let server = try WebhookServer { _ in .close }
        server.close()
        let (attempt, _) = try deliver(.close, url: "http://127.0.0.1:\(server.port)/")
        #expect(attempt.error == "cannot_connect")
    }

    // The address is checked when connecting, because a name may resolve to another address by then.
    @Test(arguments: [
        "http://localhost:PORT/in", "http://127.0.0.1:PORT/in", "http://2130706433:PORT/in",
    ])
    func aPrivateAddressIsNotRequestedUnlessAllowed(url: String) throws {
        let (attempt, requests) = try deliver(.answer(200), url: url, allowsPrivate: false)
        #expect(attempt.error == "refused_address" && attempt.status == nil && requests.isEmpty)
        #expect(try deliver(.answer(200), url: url).attempt.error == nil)
    }

    @Test(arguments: ["https://2852039166/", "https://0xa9fea9fe/", "https://169.254.169.254/"])
    func aLinkLocalAddressIsRejectedEvenIfPrivateOnesAreAllowed(url: String) throws {
        let (attempt, _) = try deliver(.answer(200), url: url)
        #expect(attempt.error == "refused_address" && attempt.reason.contains("link-local"))
    }

    @Test func aDeliveryEndsWhenTheGatewayStops() throws {
        let isStopping = Lock(false)
        let server = try WebhookServer { _ in
            isStopping.withLock { $0 = true }
            return .hang
        }
        defer { server.close() }
        let (attempt, _) = try deliver(
            .hang, timeout: 60_000, url: server.url, isCancelled: { isStopping.withLock { $0 } })
        #expect(attempt.error == "cancelled" && attempt.durationMilliseconds < 20_000)
    }
}
