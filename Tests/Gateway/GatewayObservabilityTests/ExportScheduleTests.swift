import CountersignCore
import GatewayTestSupport
import Testing

@testable import GatewayObservability

/// Order and times of exports, with a simulated clock.
struct ExportScheduleTests {
    /// A schedule in a class, so that `#expect` can mutate it.
    private final class Machine {
        private var machine = ExportSchedule(at: 0)
        var droppedSpans: Int { machine.droppedSpans }
        func add(_ request: TracedRequest, at now: Double) -> Bool { machine.add(request, at: now) }
        func next(at now: Double) -> ExportSchedule.Action { machine.next(at: now) }
        func close() { machine.close() }
        func ended(
            _ outcome: ExportSchedule.Outcome, rejectedSpans: Int = 0, at now: Double, jitter: Double
        ) {
            machine.ended(outcome, rejectedSpans: rejectedSpans, at: now, jitter: jitter)
        }
    }

    private let schedule = Machine()
    private let request: TracedRequest

    init() throws {
        request = try #require(TracedRequest(Traced.record()))
    }

    /// The number of requests in the next trace export; nil for any other action.
    private func traces(at now: Double) -> Int? {
        guard case .traces(let requests) = schedule.next(at: now) else { return nil }
        return requests.count
    }

    private func wait(at now: Double) -> Double? {
        guard case .wait(let seconds) = schedule.next(at: now) else { return nil }
        return seconds
    }

    private func isMetrics(at now: Double) -> Bool {
        if case .metrics = schedule.next(at: now) { true } else { false }
    }

    private func isEnd(at now: Double) -> Bool {
        if case .end = schedule.next(at: now) { true } else { false }
    }

    @Test func requestsAreExportedInBatchesAfterAWait() {
        #expect(wait(at: 0) == 60)
        #expect(schedule.add(request, at: 1))
        #expect(!schedule.add(request, at: 2))
        #expect(wait(at: 2) == 4)
        #expect(traces(at: 6) == 2)
        schedule.ended(.taken, at: 6, jitter: 1)
        #expect(wait(at: 6) == 54)
    }

    @Test func aFullBatchDoesNotWait() {
        for number in 1...ExportSchedule.batch {
            let wakes = schedule.add(request, at: 0)
            #expect(wakes == (number == 1 || number == ExportSchedule.batch))
        }
        #expect(traces(at: 0) == ExportSchedule.batch)
    }

    @Test func spansBeyondTheLimitAreDroppedAndCounted() {
        for _ in 0..<ExportSchedule.mostWaiting { _ = schedule.add(request, at: 0) }
        #expect(schedule.droppedSpans == 0)
        for _ in 0..<3 { _ = schedule.add(request, at: 0) }
        #expect(schedule.droppedSpans == 3 * request.spanCount)
        // Waiting requests are sent one batch at a time.
        var sent = 0
        while let count = traces(at: 1) {
            sent += count
            schedule.ended(.taken, at: 1, jitter: 1)
        }
        #expect(sent == ExportSchedule.mostWaiting)
    }

    @Test func exportsToAFailingCollectorBackOff() {
        _ = schedule.add(request, at: 0)
        #expect(traces(at: 5) == 1)
        schedule.ended(.failed(retryAfter: nil), at: 5, jitter: 1)
        #expect(wait(at: 5) == 1)
        #expect(traces(at: 6) == 1)
        schedule.ended(.failed(retryAfter: nil), at: 6, jitter: 1)
        #expect(wait(at: 6) == 2)
        #expect(traces(at: 8) == 1)
        schedule.ended(.failed(retryAfter: nil), at: 8, jitter: 0)
        #expect(wait(at: 8) == 2)
        for _ in 0..<20 { schedule.ended(.failed(retryAfter: nil), at: 8, jitter: 1) }
        #expect(wait(at: 8) == ExportSchedule.retry.maximumDelay)
        #expect(schedule.droppedSpans == 0)
    }

    @Test func retryAfterOfTheCollectorIsFollowedUpToALimit() {
        _ = schedule.add(request, at: 0)
        #expect(traces(at: 5) == 1)
        schedule.ended(.failed(retryAfter: 30), at: 5, jitter: 1)
        #expect(wait(at: 5) == 30)
        #expect(traces(at: 35) == 1)
        schedule.ended(.failed(retryAfter: 86_400), at: 35, jitter: 1)
        #expect(wait(at: 35) == ExportSchedule.retry.maximumServerDelay)
    }

    @Test func rejectedBatchesAreNotSentAgain() {
        _ = schedule.add(request, at: 0)
        #expect(traces(at: 5) == 1)
        schedule.ended(.rejected, at: 5, jitter: 1)
        #expect(schedule.droppedSpans == request.spanCount)
        #expect(traces(at: 5) == nil)
    }

    @Test func rejectedSpansAreCounted() {
        _ = schedule.add(request, at: 0)
        #expect(traces(at: 5) == 1)
        schedule.ended(.taken, rejectedSpans: 2, at: 5, jitter: 1)
        #expect(schedule.droppedSpans == 2)
    }

    /// A collector's count of rejected spans is limited to the batch, and ignored for metrics.
    @Test func rejectedSpanCountsAreLimitedToTheBatch() {
        for round in 1...3 {
            _ = schedule.add(request, at: Double(10 * round))
            #expect(traces(at: Double(10 * round) + 5) == 1)
            schedule.ended(.taken, rejectedSpans: .max, at: Double(10 * round) + 5, jitter: 1)
            #expect(schedule.droppedSpans == round * request.spanCount)
        }
        #expect(isMetrics(at: 60))
        schedule.ended(.taken, rejectedSpans: .max, at: 60, jitter: 1)
        #expect(schedule.droppedSpans == 3 * request.spanCount)
    }

    @Test func aBacklogOfTracesDoesNotDelayMetrics() {
        for _ in 0..<(2 * ExportSchedule.batch) { _ = schedule.add(request, at: 59) }
        #expect(traces(at: 59) == ExportSchedule.batch)
        schedule.ended(.failed(retryAfter: nil), at: 59, jitter: 1)
        #expect(isMetrics(at: 60))
        // Failed metrics are not sent again. The next export includes their values.
        schedule.ended(.failed(retryAfter: nil), at: 60, jitter: 1)
        #expect(traces(at: 62) == ExportSchedule.batch)
        schedule.ended(.taken, at: 62, jitter: 1)
        #expect(traces(at: 62) == ExportSchedule.batch)
        schedule.ended(.taken, at: 62, jitter: 1)
        #expect(isMetrics(at: 120))
    }

    @Test func closingExportsTracesAndMetricsOnce() {
        _ = schedule.add(request, at: 0)
        schedule.close()
        #expect(traces(at: 0) == 1)
        schedule.ended(.taken, at: 0, jitter: 1)
        #expect(isMetrics(at: 0))
        schedule.ended(.taken, at: 0, jitter: 1)
        #expect(isEnd(at: 0))
        _ = schedule.add(request, at: 0)
        #expect(schedule.droppedSpans == request.spanCount)
    }

    @Test func aFailedExportWhileClosingIsNotRetried() {
        _ = schedule.add(request, at: 0)
        schedule.close()
        #expect(traces(at: 0) == 1)
        schedule.ended(.failed(retryAfter: nil), at: 0, jitter: 1)
        #expect(isEnd(at: 0))
        #expect(schedule.droppedSpans == request.spanCount)
    }

    @Test(arguments: [
        (200, ExportSchedule.Outcome.taken), (202, .taken), (400, .rejected), (401, .rejected),
        (404, .rejected),
        (413, .rejected), (500, .rejected), (429, .failed(retryAfter: 7)), (502, .failed(retryAfter: 7)),
        (503, .failed(retryAfter: 7)), (504, .failed(retryAfter: 7)),
    ])
    func collectorStatusesDecideWhetherToRetry(status: Int, expected: ExportSchedule.Outcome) {
        #expect(OTLPAnswer(status: status, retryAfterSeconds: 7, body: []).outcome == expected)
    }

    @Test func anExportWithoutAResponseIsAFailure() {
        #expect(OTLPAnswer(failure: "timeout").outcome == .failed(retryAfter: nil))
    }

    @Test(arguments: [
        (#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#, 3, "3 rejected: too old"),
        (#"{"partialSuccess":{"rejectedSpans":3}}"#, 3, "3 rejected: "),
        (#"{"partialSuccess":{"rejectedDataPoints":"4"}}"#, 0, "4 rejected: "),
        (#"{"partialSuccess":{"errorMessage":"hm"}}"#, 0, "0 rejected: hm"),
        (
            #"{"partialSuccess":{"rejectedSpans":"9223372036854775807","rejectedDataPoints":9223372036854775807}}"#,
            2_147_483_648, "4294967296 rejected: "
        ),
        (#"{"partialSuccess":{"rejectedSpans":-1,"rejectedDataPoints":"1"}}"#, 0, "1 rejected: "),
    ])
    func aPartialSuccessIsReported(body: String, spans: Int, detail: String) {
        let partial = OTLPAnswer(status: 200, retryAfterSeconds: nil, body: Array(body.utf8)).partialSuccess
        #expect(partial?.spans == spans)
        #expect(partial?.detail == detail)
    }

    @Test(arguments: ["", "{}", "no", #"{"partialSuccess":{}}"#, #"{"partialSuccess":null}"#])
    func aResponseWithoutPartialSuccessIsComplete(body: String) {
        let answer = OTLPAnswer(status: 200, retryAfterSeconds: nil, body: Array(body.utf8))
        #expect(answer.partialSuccess == nil)
    }
}
