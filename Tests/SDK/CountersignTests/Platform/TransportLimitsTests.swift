import CountersignCore
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery
@testable import CountersignLocations
@testable import CountersignTransport

/// Time limits, interruption and error codes of transports, including those of `URLSession`.
@Suite(.closing, .timeLimit(.minutes(5)))
struct TransportLimitsTests {
    private let clock = ManualClock()

    private func code(
        _ body: @escaping @Sendable () async throws(HTTPTransportError) -> Int
    ) async -> HTTPTransportError.Code? {
        do {
            _ = try await withTimeLimit(300, clock: clock, body)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func aRequestWithinItsTimeLimitSucceeds() async throws {
        let piece = Handshake()
        let result = Task { [clock] in
            try await withTimeLimit(300, clock: clock) {
                await piece.wait()
                return 7
            }
        }
        await clock.waitForSleeper()
        clock.advance(by: 299)
        piece.signal()
        #expect(try await result.value == 7)
    }

    @Test func aRequestOverItsTimeLimitIsCancelled() async {
        async let result = code { () async throws(HTTPTransportError) in
            await Handshake().wait()
            throw HTTPTransportError(.cancelled, "")
        }
        await clock.waitForSleeper(count: 1)
        clock.advance(by: 300)
        #expect(await result == .timedOut)
    }

    @Test func anErrorWithinTheTimeLimitIsThrownUnchanged() async {
        #expect(
            await code { () async throws(HTTPTransportError) in throw HTTPTransportError(.tls, "") } == .tls)
    }

    /// Starts an exchange that the server leaves unanswered until the exchange is cancelled.
    private func exchangeWithoutAnswer() async throws -> (
        server: ScriptedTransport, transport: InterruptibleTransport, request: TransportRequest,
        exchange: Task<HTTPTransportError.Code?, Never>
    ) {
        let began = Handshake()
        let server = ScriptedTransport { _ in
            began.signal()
            await Handshake().wait()
            throw CancellationError()
        }
        let transport = InterruptibleTransport(server, clock: clock)
        let request = TransportRequest(
            url: try #require(URL(string: "http://a.example")), headers: [], body: [])
        let exchange = Task { () -> HTTPTransportError.Code? in
            do throws(HTTPTransportError) {
                _ = try await transport.send(request)
                return nil
            } catch {
                return error.code
            }
        }
        await began.wait()
        return (server, transport, request, exchange)
    }

    @Test func anInterruptedTransportCancelsAndRejectsRequestsUntilResumed() async throws {
        let (server, transport, request, exchange) = try await exchangeWithoutAnswer()
        transport.interrupt()
        #expect(await exchange.value == .cancelled)
        server.setHandler { _ in TransportResponse(status: 200) }
        let error = await #expect(throws: HTTPTransportError.self) { try await transport.send(request) }
        #expect(error?.code == .cancelled)
        #expect(server.requests.count == 1)
        transport.resume()
        #expect(try await transport.send(request).status == 200)
    }

    @Test func theCallerCanCancelAnExchangeToo() async throws {
        let (_, _, _, exchange) = try await exchangeWithoutAnswer()
        exchange.cancel()
        #expect(await exchange.value == .cancelled)
    }

    /// Numbers of `URLError.Code`, which are `NSURLError…` of Apple's headers.
    @Test(
        arguments: [
            (-1001, .timedOut), (-999, .cancelled), (-1003, .cannotConnect), (-1004, .cannotConnect),
            (-1006, .cannotConnect), (-1009, .cannotConnect), (-1018, .cannotConnect),
            (-1019, .cannotConnect),
            (-1020, .cannotConnect), (-1005, .connectionLost), (-1200, .tls), (-1202, .tls), (-1206, .tls),
            (-1022, .notPermitted), (-1000, .notPermitted), (-1002, .notPermitted), (-1, .other),
            (-1017, .other),
            (-2000, .other),
        ] as [(Int, HTTPTransportError.Code)])
    func failuresOfURLSessionAreClassified(number: Int, code: HTTPTransportError.Code) {
        let error = HTTPTransportError(urlErrorCode: number)
        #expect(error.code == code)
        #expect(error.detail == "URLError \(number)")
    }

    @Test func aForbiddenRequestIsRetriedHourlyAndLoggedOnce() async throws {
        var bench = try Bench()
        bench.configuration.flushPolicy = .automatic
        let lines = Lock([String]())
        bench.configuration.log = CountersignLog(isEnabled: { $0 >= .warning }) { _, text, values in
            lines.withLock { $0.append("\(text): \(values["code"] ?? "")") }
        }
        bench.transport.setHandler { _ in throw HTTPTransportError(urlErrorCode: -1022) }
        let client = try bench.makeClient()
        try await client.record("A")
        for _ in 0..<3 {
            #expect(await client.flush().batches.map(\.outcome) == [.configurationProblem])
        }
        let snapshot = await client.snapshot()
        #expect(snapshot.configurationProblem == "not_permitted: URLError -1022")
        #expect(snapshot.nextAttemptIn == 3_600)
        #expect(snapshot.queued == 1)
        #expect(lines.withLock { $0 } == ["nothing is sent until settings change: not_permitted"])
    }

    @Test func aRefreshForbiddenByTheSystemIsNotATransientFailure() {
        let answer = RefreshAnswer(failure: HTTPTransportError(urlErrorCode: -1022))
        #expect(answer.meaning == .unusable(.init("not_permitted", "URLError -1022")))
        #expect(!answer.mayBeExchanged)
        #expect(
            RefreshAnswer(failure: HTTPTransportError(urlErrorCode: -1001)).meaning
                == .transient(.init("timed_out", "URLError -1001")))
    }
}
