import CountersignCore
import Foundation
import GatewayModel
import GatewayTestSupport
import TestSupport
import Testing

@testable import GatewayObservability

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct GatewayLogTests {
    /// Collects the output of the log. Can block like a slow terminal.
    private final class Sink: Sendable {
        let text = Lock("")
        let isEntered = DispatchSemaphore(value: 0)
        let mayGoOn = DispatchSemaphore(value: 0)
        let isSlow: Bool

        init(isSlow: Bool = false) {
            self.isSlow = isSlow
        }

        func write(_ bytes: [UInt8]) {
            if isSlow {
                isEntered.signal()
                _ = mayGoOn.wait(timeout: .now() + 60)
            }
            text.withLock { $0 += String(decoding: bytes, as: UTF8.self) }
        }

        var lines: [[String: Any]] {
            text.withLock { $0 }.split(separator: "\n").map {
                (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any] ?? [:]
            }
        }
    }

    private func record(
        method: String = "POST", path: String = "/v1/batch", route: String? = "/v1/batch",
        status: Int? = 200, trace: TraceParent? = nil, _ note: (inout RequestContext) -> Void = { _ in }
    ) -> RequestRecord {
        var context = RequestContext()
        context.route = route
        note(&context)
        return RequestRecord(
            receivedMilliseconds: 0, id: "r-1", trace: trace, method: method, path: path,
            clientAddress: "127.0.0.1", context: context, status: status, code: nil, bytesIn: 3, bytesOut: 5,
            seconds: 0.0123456)
    }

    @Test func aRequestIsLoggedAsOneLine() {
        let sink = Sink()
        let log = GatewayLog(level: .info, gatherSeconds: 0) { sink.write($0) }
        let trace = TraceParent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        log.requestEnded(
            record(status: 401, trace: trace) { context in
                context.appID = "shop"
                context.enforcement = .required
                context.verdict = .rejected
                context.authCode = .expired
                context.accepted = 2
            })
        log.close(within: 60)
        let expected = #"""
            {"time":"1970-01-01T00:00:00.000Z","level":"warning","message":"request","request_id":"r-1",\#
            "trace_id":"0af7651916cd43dd8448eb211c80319c","method":"POST","route":"/v1/batch",\#
            "status":401,"client":"127.0.0.1","app":"shop","enforcement":"required",\#
            "verdict":"rejected","code":"EXPIRED","accepted":2,"duplicates":0,"rejected":0,\#
            "bytes_in":3,"bytes_out":5,"duration_ms":12.346}

            """#
        let text = sink.text.withLock { $0 }
        #expect(text == expected)
    }

    @Test func logLinesHaveTheTimeOfTheGivenClock() {
        let sink = Sink()
        let log = GatewayLog(
            level: .info, gatherSeconds: 0, write: { sink.write($0) },
            now: { Date(timeIntervalSince1970: 0.25) })
        log.note(.info, "it is early")
        log.close(within: 60)
        let text = sink.text.withLock { $0 }
        #expect(text.hasPrefix(#"{"time":"1970-01-01T00:00:00.250Z","#), "\(text)")
    }

    @Test func textFromClientsIsEscaped() throws {
        let sink = Sink()
        let log = GatewayLog(level: .info, gatherSeconds: 0) { sink.write($0) }
        let nasty = "/\u{1B}[31m\"\\\n\r\u{85}\u{9B}\u{2028}ü😀" + String(repeating: "x", count: 1_000)
        log.requestEnded(record(path: nasty, route: nil, status: 404))
        log.close(within: 60)
        let text = sink.text.withLock { $0 }
        #expect(text.utf8.dropLast().allSatisfy { (0x20..<0x7F).contains($0) })
        let path = try #require(sink.lines.first?["path"] as? String)
        #expect(nasty.hasPrefix(path))
        #expect(path.utf16.count == 128)
    }

    @Test(arguments: [
        (200, "/v1/batch", LogLevel.info), (200, "/livez", .debug), (503, "/readyz", .error),
        (401, "/v1/batch", .warning), (200, "/metrics", .debug),
    ])
    func theLevelFollowsTheStatus(status: Int, route: String, expected: LogLevel) {
        #expect(GatewayLog.level(of: record(route: route, status: status)) == expected)
    }

    @Test func aRequestAcceptedWithAWarningIsLoggedAsAWarning() {
        let warned = record { $0.verdict = .acceptedWithWarning }
        #expect(GatewayLog.level(of: warned) == .warning)
        #expect(GatewayLog.level(of: record(status: nil)) == .info)
    }

    @Test func recordsBelowTheLogLevelAreNotWritten() {
        let sink = Sink()
        let log = GatewayLog(level: .warning, gatherSeconds: 0) { sink.write($0) }
        log.requestEnded(record())
        log.requestEnded(record(status: 500))
        log.note(.info, "nothing")
        log.close(within: 60)
        #expect(sink.lines.count == 1)
    }

    @Test func aSlowReaderBlocksNoRequestAndTheLossIsLogged() throws {
        let sink = Sink(isSlow: true)
        let log = GatewayLog(level: .info, capacity: 10, gatherSeconds: 0) { sink.write($0) }
        log.requestEnded(record())
        try sink.isEntered.waitForSignal()
        // The writer is stuck; none of these calls waits for it.
        for _ in 0..<25 { log.requestEnded(record()) }
        #expect(log.droppedLines == 15)
        for _ in 0..<3 { sink.mayGoOn.signal() }
        log.close(within: 60)
        let lines = sink.lines
        #expect(lines.filter { $0["message"] as? String == "request" }.count == 11)
        #expect(lines.first { $0["message"] as? String == "log lines dropped" }?["count"] as? Int == 15)
    }

    @Test func closingTheLogDoesNotWaitForABlockedReader() throws {
        let sink = Sink(isSlow: true)
        let log = GatewayLog(level: .info, gatherSeconds: 0) { sink.write($0) }
        log.requestEnded(record())
        try sink.isEntered.waitForSignal()
        log.close(within: 0.01)
        #expect(sink.text.withLock { $0.isEmpty })
        sink.mayGoOn.signal()
    }

    @Test(arguments: [
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-extra",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7-b7ad6b7169203331-01", "",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
    ])
    func anInvalidTraceParentIsIgnored(text: String) {
        #expect(TraceParent(text) == nil)
    }

    @Test func aLaterVersionOfATraceParentMayHaveMore() {
        let trace = TraceParent("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more")
        let response = trace.map {
            TraceParent(traceID: $0.traceID, spanID: 0xAB, isSampled: $0.isSampled).text
        }
        #expect(response == "00-0af7651916cd43dd8448eb211c80319c-00000000000000ab-00")
    }
}
