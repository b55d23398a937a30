/// The times of a request's phases, in nanoseconds of the monotonic clock; 0 for phases that were not reached.
package struct RequestSpan: Sendable {
    /// The trace id and the span id of the whole request.
    package let context: TraceParent
    /// The caller's span; nil when the trace begins at the gateway.
    package let parentID: String?

    /// Arrival of the first byte of the request.
    package var began: UInt64 = 0
    /// The request was read and routing began.
    package var handlingBegan: UInt64 = 0
    package var verifyBegan: UInt64 = 0
    package var verifyEnded: UInt64 = 0
    package var admissionEnded: UInt64 = 0
    package var storeBegan: UInt64 = 0
    package var storeEnded: UInt64 = 0
    /// The response was ready, or the request ended without a response.
    package var ended: UInt64 = 0

    package init(context: TraceParent, parentID: String?) {
        self.context = context
        self.parentID = parentID
    }
}

/// Decides whether a request's trace is recorded. Follows the caller's decision. Samples a share of the requests
/// without a `traceparent`.
package struct TraceSampler: Sendable {
    private let ratio: Double
    private let random: @Sendable () -> UInt64

    /// `ratio` is the share of recorded traces, from 0 to 1.
    package init(
        ratio: Double, random: @escaping @Sendable () -> UInt64 = { UInt64.random(in: 0...UInt64.max) }
    ) {
        self.ratio = ratio
        self.random = random
    }

    /// The span of a request; nil when its trace is not recorded. `caller` is the `traceparent` of the request.
    package func span(caller: TraceParent?) -> RequestSpan? {
        if let caller {
            guard caller.isSampled else { return nil }
            return RequestSpan(
                context: TraceParent(traceID: caller.traceID, spanID: random(), isSampled: true),
                parentID: caller.spanID)
        }
        guard ratio > 0, ratio >= 1 || Double(random() >> 11) * 0x1p-53 < ratio else { return nil }
        let traceID = TraceParent.hexadecimal(random()) + TraceParent.hexadecimal(max(random(), 1))
        return RequestSpan(
            context: TraceParent(traceID: traceID, spanID: random(), isSampled: true), parentID: nil)
    }
}
