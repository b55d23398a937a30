internal import CountersignCore
internal import CountersignJSON

/// A pool of parsers for checking bodies. Creating a parser for each event would cost as much as the check.
enum BodyParsers {
    /// Longer bodies use a temporary parser, so that its memory is freed.
    private static let longest = 65_536
    private static let mostIdle = 4

    // A parser taken out of `idle` belongs to one thread.
    private struct Idle: @unchecked Sendable {
        let parser: StrictJSONParser
    }

    private static let idle = Lock<[Idle]>([])

    static func isJSON(_ body: [UInt8]) -> Bool {
        guard body.count <= longest else {
            return isJSON(body, StrictJSONParser(maximumBytes: body.count))
        }
        let taken =
            idle.withLock { $0.popLast() } ?? Idle(parser: StrictJSONParser(maximumBytes: longest))
        defer { idle.withLock { if $0.count < mostIdle { $0.append(taken) } } }
        return isJSON(body, taken.parser)
    }

    private static func isJSON(_ body: [UInt8], _ parser: StrictJSONParser) -> Bool {
        (try? parser.parse(bytes: body) { _ in true }) == true
    }
}
