internal import Dispatch

/// What a request whose trace is recorded takes down on its way.
///
/// Instants are nanoseconds of the clock that never goes back; 0 where the request did not come so far.
package struct RequestSpan: Sendable {
    /// The trace, and the span of the whole request.
    package let context: TraceParent
    /// The caller's span; nil where the trace begins here.
    package let parentID: String?

    /// When its request line was there.
    package var began: UInt64 = 0
    /// When it had been read and its endpoint was looked for.
    package var handlingBegan: UInt64 = 0
    package var verifyBegan: UInt64 = 0
    package var verifyEnded: UInt64 = 0
    /// When it had its verdict.
    package var admissionEnded: UInt64 = 0
    package var storeBegan: UInt64 = 0
    /// When the store had said what became of its events.
    package var storeEnded: UInt64 = 0
    /// When it had its answer, or ended without one.
    package var ended: UInt64 = 0

    package init(context: TraceParent, parentID: String?) {
        self.context = context
        self.parentID = parentID
    }

    /// Now.
    package static var instant: UInt64 { DispatchTime.now().uptimeNanoseconds }
}

/// Decides which requests have their trace recorded: those whose caller records it, and a share of those without a
/// caller who says.
package struct TraceSampler: Sendable {
    private let ratio: Double
    private let random: @Sendable () -> UInt64

    /// - Parameters:
    ///   - ratio: The share, from 0 to 1, of the traces that begin here.
    ///   - random: 64 random bits.
    package init(
        ratio: Double, random: @escaping @Sendable () -> UInt64 = { UInt64.random(in: 0...UInt64.max) }
    ) {
        self.ratio = ratio
        self.random = random
    }

    /// The span of a request with this caller; nil for one that is not recorded.
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
