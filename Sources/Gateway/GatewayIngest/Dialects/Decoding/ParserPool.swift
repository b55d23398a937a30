internal import CountersignCore
package import CountersignJSON
package import GatewayHTTP
package import GatewayModel

/// JSON parsers that keep their buffers between requests. A parser is used by one thread at a time.
package final class ParserPool: Sendable {
    // `@unchecked`, because only the thread that has taken a parser out of the pool uses the parser.
    private struct Parsers: @unchecked Sendable {
        var free: [StrictJSONParser] = []
    }

    /// The size of a body in bytes above which its parser is discarded, because a parser's buffers do not shrink.
    private static let usual = 256 * 1024

    private let parsers = Lock(Parsers())
    let limits: GatewayLimits
    private let maximumNameBytes: Int

    package init(limits: GatewayLimits, maximumNameBytes: Int = .max) {
        self.limits = limits
        self.maximumNameBytes = maximumNameBytes
    }

    package func withRoot(of request: HTTPRequest, _ body: (JSONNode) -> Void) throws(InvalidJSON) {
        try withParser(of: request) { parser throws(InvalidJSON) in
            try parse(request, parser, body)
        }
    }

    /// Parses a body with events. If the body is not JSON, unpaired surrogates become U+FFFD. If the body is still not
    /// JSON, `isolate` removes the invalid events, and the rest must be JSON. The request then has the changed body.
    package func withEvents(
        of request: HTTPRequest, isolate: (inout BodyRepair) -> Void,
        _ body: (JSONNode, EventFaults) -> Void
    ) throws(InvalidJSON) {
        try withParser(of: request) { parser throws(InvalidJSON) in
            var failure: InvalidJSON
            do throws(InvalidJSON) {
                return try parse(request, parser) { body($0, EventFaults()) }
            } catch {
                failure = error
            }
            var repair = BodyRepair(request, limits)
            if repair.replaceUnpairedSurrogates() {
                do throws(InvalidJSON) {
                    return try parse(request, parser) { body($0, repair.faults) }
                } catch {
                    failure = error
                }
            }
            isolate(&repair)
            guard repair.hasChanged else { throw failure }
            try parse(request, parser) { body($0, repair.faults) }
        }
    }

    private func withParser(
        of request: HTTPRequest, _ work: (StrictJSONParser) throws(InvalidJSON) -> Void
    ) throws(InvalidJSON) {
        let parser =
            parsers.withLock { $0.free.popLast() }
            ?? StrictJSONParser(
                maximumBytes: limits.bodyBytes, maximumDepth: limits.jsonDepth,
                maximumNameBytes: maximumNameBytes)
        defer { if request.body.count <= Self.usual { parsers.withLock { $0.free.append(parser) } } }
        try work(parser)
    }

    private func parse(
        _ request: HTTPRequest, _ parser: StrictJSONParser, _ body: (JSONNode) -> Void
    ) throws(InvalidJSON) {
        do {
            try parser.parse(bytes: request.body, body)
        } catch {
            throw InvalidJSON(
                reason: (error as? StrictJSONError ?? .syntax).reason(for: "the body", limits))
        }
    }
}

package struct InvalidJSON: Error {
    package let reason: String
}
