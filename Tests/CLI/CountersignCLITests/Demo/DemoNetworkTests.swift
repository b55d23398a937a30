import Countersign
import CountersignCore
import CountersignGatewayTesting
import CountersignTesting
import CountersignTransport
import Foundation
import Testing

@testable import CountersignCLI

@Suite(.timeLimit(.minutes(5)))
struct DemoNetworkTests {
    private let tokens: DemoTokens
    private let waits = Lock([Double]())

    init() throws {
        tokens = DemoTokens(key: try SharedKeys.app())
    }

    private func network(status: Int = 200, body: String = "{}") -> (DemoNetwork, ScriptedTransport) {
        let server = ScriptedTransport { _ in TransportResponse(status: status, body: Array(body.utf8)) }
        let network = DemoNetwork(over: server, tokens: tokens) { [waits] seconds in
            waits.withLock { $0.append(seconds) }
        }
        return (network, server)
    }

    private func request(bearer: String? = nil) throws -> TransportRequest {
        let url = try #require(URL(string: "http://127.0.0.1/v1/batch"))
        return TransportRequest(
            url: url, headers: bearer.map { [("Authorization", "Bearer \($0)")] } ?? [], body: [])
    }

    @Test func requestsFailWhileTheDemoNetworkIsCut() async throws {
        let (network, server) = network()
        network.setCut(true)
        let error = await #expect(throws: HTTPTransportError.self) { try await network.send(request()) }
        #expect(error?.code == .cannotConnect)
        #expect(server.requests.isEmpty)
        #expect(network.tally.cut == 1)
        network.setCut(false)
        _ = try await network.send(request())
        #expect(server.requests.count == 1)
    }

    @Test(arguments: [
        (200, #"{"success":true,"accepted":3,"duplicates":2,"rejected":[]}"#, 5, 2, [String: Int]()),
        (
            401, #"{"success":false,"auth_error":{"error_code":22,"reason":"EXPIRED"}}"#, 0, 0,
            ["22 EXPIRED": 1]
        ),
        (401, #"{"success":false,"code":"invalid_write_key"}"#, 0, 0, ["invalid_write_key": 1]),
        (502, "<html>", 0, 0, ["502": 1]),
    ])
    func theGatewaysAnswersAreCounted(
        status: Int, body: String, delivered: Int, duplicates: Int, rejections: [String: Int]
    ) async throws {
        let (network, _) = network(status: status, body: body)
        _ = try await network.send(request())
        let tally = network.tally
        #expect(
            tally
                == DemoNetwork.Tally(
                    delivered: delivered, duplicates: duplicates, cut: 0, rejections: rejections)
        )
    }

    @Test func theDemoHoldsOneRequestUntilItsTokenExpires() async throws {
        let (network, server) = network()
        let token = try tokens.token(for: "a", reason: .missing)
        network.holdNext()
        _ = try await network.send(request(bearer: token))
        _ = try await network.send(request(bearer: token))
        let held = waits.withLock { $0 }
        #expect(held.count == 1)
        #expect((held.first ?? 0) > 0)
        #expect(server.requests.count == 2)
    }

    @Test func aRequestDuringANetworkCutDoesNotUseUpTheHold() async throws {
        let (network, _) = network()
        let token = try tokens.token(for: "a", reason: .missing)
        network.holdNext()
        network.setCut(true)
        _ = try? await network.send(request(bearer: token))
        network.setCut(false)
        _ = try await network.send(request(bearer: token))
        #expect(waits.withLock { $0.count } == 1)
    }

    /// A gateway that is killed during the hold has not verified the token, so the next request is held too.
    @Test func anUnansweredHeldRequestDoesNotUseUpTheHold() async throws {
        let (network, server) = network()
        let token = try tokens.token(for: "a", reason: .missing)
        network.holdNext()
        server.setHandler { _ in throw HTTPTransportError(.connectionLost, "killed") }
        await #expect(throws: HTTPTransportError.self) { try await network.send(request(bearer: token)) }
        server.setHandler { _ in TransportResponse(status: 401, body: []) }
        for _ in 0..<2 { _ = try await network.send(request(bearer: token)) }
        #expect(waits.withLock { $0.count } == 2)
    }

    @Test func onlyReplacementTokensCountAsRefreshed() throws {
        _ = try tokens.token(for: "a", reason: .missing)
        #expect(tokens.refreshed == 0)
        _ = try tokens.token(for: "a", reason: .rejected)
        _ = try tokens.token(for: "a", reason: .expired)
        #expect(tokens.refreshed == 2)
    }
}
