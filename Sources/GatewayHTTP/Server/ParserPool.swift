internal import CountersignCore
package import CountersignJOSE
package import GatewayModel

/// JSON parsers that keep their memory between requests; one thread at a time has each.
package final class ParserPool: Sendable {
    // A parser is used only by whoever has taken it out.
    private struct Parsers: @unchecked Sendable {
        var free: [StrictJSONParser] = []
    }

    /// A parser keeps memory for many times the largest body that it has met: one beyond this is not kept.
    private static let usual = 256 * 1024

    private let parsers = Lock(Parsers())
    private let limits: GatewayLimits

    package init(limits: GatewayLimits) {
        self.limits = limits
    }

    /// Parses a body and hands its root to `body`, or says why it is no JSON.
    package func withRoot(of request: HTTPRequest, _ body: (JSONNode) -> Void) throws(InvalidJSON) {
        let parser =
            parsers.withLock { $0.free.popLast() }
            ?? StrictJSONParser(maximumBytes: limits.bodyBytes, maximumDepth: limits.jsonDepth)
        defer { if request.body.count <= Self.usual { parsers.withLock { $0.free.append(parser) } } }
        do {
            try parser.parse(bytes: request.body, body)
        } catch {
            throw InvalidJSON(reason: reason(error as? StrictJSONError))
        }
    }

    private func reason(_ error: StrictJSONError?) -> String {
        switch error {
        case .empty: "the body is empty; send one JSON object"
        case .notUTF8: "the body must be UTF-8 without a byte order mark"
        case .tooDeep: "the body nests deeper than \(limits.jsonDepth) levels"
        case .numberOutOfRange: "a number in the body does not fit into 64 bits"
        case .tooLarge: "the body is larger than \(limits.bodyBytes) bytes"
        case .duplicateMember: "an object in the body has two members with the same name"
        case .nameTooLong: "a member's name in the body is too long"
        case .outOfMemory: "there is not enough memory for the body"
        case .syntax, nil: "the body is not JSON"
        }
    }
}

/// Why a body is no JSON, or none that we take.
package struct InvalidJSON: Error {
    package let reason: String
}
