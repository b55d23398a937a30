import CCurl
import CountersignCore
import CountersignCurl
import Foundation
import GatewayModel
import GatewayTestSupport
import TestSupport
import Testing

@testable import GatewayHTTP

/// Requests to other servers, and limits on their responses.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct OutboundRequestTests {
    private func ask(_ server: WebhookServer, maximumBytes: Int) throws(OutboundRequest.Failure) -> [UInt8] {
        try OutboundRequest(
            url: server.url, schemes: "http", allowsPrivateAddresses: true, timeoutMilliseconds: 60_000,
            maximumBytes: maximumBytes
        ).perform().body
    }

    @Test func anAnswerThatIsTooLongIsAFailure() throws {
        let server = try WebhookServer { _ in .answer(200, body: String(repeating: "x", count: 1_000)) }
        defer { server.close() }
        #expect(try ask(server, maximumBytes: 1_000).count == 1_000)
        let failure = #expect(throws: OutboundRequest.Failure.self) {
            try ask(server, maximumBytes: 999)
        }
        #expect(failure?.code == .longAnswer)
        #expect(failure?.reason == "its answer is longer than 999 bytes")
    }

    @Test func anEndlessAnswerIsAbandoned() throws {
        let server = try WebhookServer { _ in .endless }
        defer { server.close() }
        let failure = #expect(throws: OutboundRequest.Failure.self) {
            try ask(server, maximumBytes: 100_000)
        }
        #expect(failure?.code == .longAnswer)
    }

    /// While one address connects slowly, libcurl also tries the next. A delivered request must not be sent again.
    @Test func aRejectedAddressDoesNotFailADeliveredRequest() throws {
        let transfer = try OutboundTransfer(
            OutboundRequest(
                url: "http://127.0.0.1:8080/", schemes: "http", allowsPrivateAddresses: false,
                timeoutMilliseconds: 60_000, maximumBytes: 100))
        let code = transfer.curl.perform()
        let failure = #expect(throws: OutboundRequest.Failure.self) { try transfer.answer(code) }
        #expect(failure?.code == .forbiddenAddress)
        // As if another address had connected.
        _ = try transfer.answer(CURLE_OK)
    }

    private let sender = WebhookSender(
        on: OutboundPool(), timeoutMilliseconds: 60_000, now: { Date() })

    private func webhook(_ server: WebhookServer) -> PushWebhook {
        PushWebhook(url: server.url, secret: [UInt8](repeating: 1, count: 24), allowsPrivateAddresses: true)
    }

    /// The alerts of all apps share a sender.
    @Test func hangingReceiversAndSlowCompletionsDelayNoOtherDelivery() throws {
        let (mayEnd, began, delivered) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        let hanging = try (0..<8).map { _ in
            try WebhookServer { _ in
                mayEnd.wait()
                return .close
            }
        }
        let other = try WebhookServer { _ in .answer(200) }
        defer {
            for server in hanging + [other] {
                mayEnd.signal()
                server.close()
            }
        }
        let ended = Lock(0)
        for server in hanging {
            sender.send([], id: "msg_1", to: webhook(server)) { _ in ended.withLock { $0 += 1 } }
        }
        for server in hanging { try #require(server.waitForRequest()) }
        sender.send([], id: "msg_2", to: webhook(other)) { _ in
            began.signal()
            mayEnd.wait()
        }
        try began.waitForSignal()
        sender.send([], id: "msg_3", to: webhook(other)) { _ in delivered.signal() }
        try delivered.waitForSignal()
        #expect(ended.withLock { $0 } == 0)
    }

    /// A slow webhook server must not fill the gateway's memory.
    @Test func runningDeliveriesAreLimited() throws {
        let mayAnswer = DispatchSemaphore(value: 0)
        let server = try WebhookServer { _ in
            mayAnswer.wait()
            return .answer(200)
        }
        defer { server.close() }
        let outcomes = Lock<(delivered: Int, overloaded: Int)>((0, 0))
        func send() {
            sender.send(Array("{}".utf8), id: "msg_1", to: webhook(server)) { outcome in
                outcomes.withLock { outcomes in
                    switch outcome {
                    case .delivered: outcomes.delivered += 1
                    case .overloaded: outcomes.overloaded += 1
                    case .rejected: break
                    }
                }
            }
        }
        for _ in 0..<64 { send() }
        #expect(outcomes.withLock { $0 } == (0, 0))
        send()
        #expect(outcomes.withLock { $0 } == (0, 1))
        for _ in 0..<65 { mayAnswer.signal() }
        sender.waitUntilIdle()
        #expect(outcomes.withLock { $0 } == (64, 1))
        // There is room again.
        send()
        sender.waitUntilIdle()
        #expect(outcomes.withLock { $0 } == (65, 1))
    }
}
