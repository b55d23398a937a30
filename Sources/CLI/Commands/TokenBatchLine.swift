internal import CountersignCore
internal import CountersignJOSE
internal import CountersignJSON
internal import Foundation
internal import GatewayModel

struct TokenBatchLine {
    let name: JSONValue
    let keys: [String]
    let token: String?
    let now: Double
    let expectedUser: String?
    let userIDs: [String]
    let policy: ClaimsPolicy
    /// Nil allows RS256 and the algorithms that the keys are bound to.
    let algorithms: [JWSAlgorithm]?

    private struct Problem: Error {
        let reason: String
        var name = JSONValue.null
    }

    private static let maximumBytes = 16 << 20

    /// The result for any line, including malformed ones.
    static func answer(to line: [UInt8]) -> JSONValue {
        do {
            let line = try TokenBatchLine(line)
            let entries = line.keys.enumerated().map {
                KeyRing.Entry(id: "key \($0.offset + 1)", text: $0.element)
            }
            var policy = line.policy
            if let names = line.algorithms {
                policy.algorithms = names
            } else {
                policy.algorithms += entries.compactMap(\.key?.algorithm)
            }
            let report = TokenVerifier(keys: KeyRing(entries: entries), policy: policy)
                .verify(
                    line.token, userID: line.expectedUser, payloadUserIDs: line.userIDs, at: line.now)
            return .object(report.verdict.merging(["name": line.name]) { $1 })
        } catch {
            let problem = error as? Problem ?? Problem(reason: "the line is not a JSON object")
            return [
                "name": problem.name, "verdict": "reject", "code": nil,
                "reason": .string("INVALID_LINE: \(problem.reason)"), "faults": [],
            ]
        }
    }

    private init(_ line: [UInt8]) throws {
        self = try StrictJSONParser(maximumBytes: Self.maximumBytes).parse(bytes: line) {
            try TokenBatchLine($0, line: line)
        }
    }

    private init(_ root: JSONNode, line: [UInt8]) throws {
        guard root.kind == .object else { throw Problem(reason: "the line is not a JSON object") }
        let name = root["name"]?.string.map { JSONValue.string($0) } ?? .null
        self.name = name
        func text(_ node: JSONNode?, _ member: String) throws -> String? {
            guard let node, !node.isNull else { return nil }
            guard let text = node.string else {
                throw Problem(reason: "\(member) is not a string", name: name)
            }
            return text
        }
        token = try text(root["token"], "token")
        expectedUser = try text(root["expected_user"], "expected_user")
        userIDs =
            try (root["user_ids"] ?? root["payload_user_ids"]).map { node in
                try node.elements.compactMap { try text($0, "user_ids") }
            } ?? []
        keys = Self.keys(root, line: line)
        guard keys.count <= KeyRing.maximumKeys else {
            throw Problem(reason: "more than \(KeyRing.maximumKeys) keys", name: name)
        }
        if let node = root["now"], !node.isNull {
            guard let seconds = node.double else {
                throw Problem(reason: "now is not a number", name: name)
            }
            now = seconds
        } else {
            now = Date().timeIntervalSince1970
        }
        var policy = ClaimsPolicy()
        if let config = root["config"], !config.isNull {
            policy.leeway = config["leeway"]?.double ?? policy.leeway
            policy.maximumLifetime = config["maximum_lifetime"]?.double
            policy.audiences = try text(config["audience"], "audience").map { [$0] } ?? []
            policy.issuers = try text(config["issuer"], "issuer").map { [$0] } ?? []
            policy.requiresAudience = config["require_audience"]?.bool ?? false
            policy.requiresIssuer = config["require_issuer"]?.bool ?? false
            policy.requiresType = config["require_type"]?.bool ?? false
        }
        self.policy = policy
        algorithms = root["config"]?["algorithms"].map { names in
            names.elements.compactMap { $0.string.map(JWSAlgorithm.init(rawValue:)) }
        }
    }

    /// The keys as texts: PEM as it is, and a JWK with the bytes of the line.
    private static func keys(_ root: JSONNode, line: [UInt8]) -> [String] {
        guard let list = root["keys"] else { return [] }
        let index = root.members.map { String(decoding: $0.name, as: UTF8.self) }.firstIndex(of: "keys") ?? 0
        return line.withUnsafeBytes { raw in
            let nodes = Array(list.elements)
            let members = StrictJSONParser.childSpans(
                of: raw, at: StrictJSONParser.rootOffset(of: raw), count: index + 1)
            let spans = StrictJSONParser.childSpans(
                of: raw, at: members[index].lowerBound, count: nodes.count)
            return zip(nodes, spans).map { node, span in
                node.string ?? String(decoding: raw[span], as: UTF8.self)
            }
        }
    }
}
