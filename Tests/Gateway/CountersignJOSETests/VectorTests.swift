import CountersignCore
import Foundation
import Testing

@testable import CountersignJOSE

/// Published and own examples; see Tests/Vectors/README.md.
struct VectorTests {
    @Test func allVectorsAreRead() {
        #expect(Vectors.jwtExamples.count == 30 && Vectors.signatures.count == 20)
    }

    @Test(arguments: Vectors.jwtExamples)
    func jwtExample(example: Vectors.JWTExample) throws {
        var policy = ClaimsPolicy()
        if example.expected == "accept" { policy.algorithms = [JWSAlgorithm(rawValue: example.algorithm)] }
        let verifier = TokenVerifier(keys: KeyRing(texts: example.keys), policy: policy)
        let report = verifier.verify(
            example.token, userID: example.user, payloadUserIDs: example.userIDs, at: example.now)
        let verdict = report.code?.reason ?? "accept"
        let defensible = example.expectedAny + (Vectors.ours[example.name].map { [$0] } ?? [])
        #expect(defensible.contains(verdict), "\(report.faults)")
        #expect((verdict == "accept") == (report.claims != nil))
        #expect(verdict == Vectors.ours[example.name] ?? example.expected)
    }

    @Test(arguments: Vectors.signatures)
    func signatureExample(example: Vectors.Signature) throws {
        let verifier = TokenVerifier(
            keys: KeyRing(texts: example.keys), policy: ClaimsPolicy(algorithms: JWSAlgorithm.all))
        let report = verifier.inspect(example.jws, at: 0)
        #expect((report.matchedKeyID != nil) == (example.expected == "accept"), "\(report.faults)")
    }
}

extension KeyRing {
    fileprivate init(texts: [String]) {
        self.init(entries: texts.enumerated().map { Entry(id: "key \($0.offset)", text: $0.element) })
    }
}

enum Vectors {
    /// This verifier's results that differ from `expected`, where several results are right.
    static let ours = [
        "jwk_use_enc": "PUBLIC_KEY_ERROR", "nbf_plus_1h": "NOT_YET_VALID",
        "alg_none_two_parts": "DECODING_ERROR",
    ]

    struct JWTExample: Sendable, CustomTestStringConvertible {
        let name: String
        let keys: [String]
        let token: String?
        let now: Double
        let user: String?
        let userIDs: [String]
        let expected: String
        let expectedAny: [String]
        var testDescription: String { name }

        /// The algorithm in the token's header. The app allows it if the token is expected to be accepted.
        var algorithm: String { (try? CompactJWS(parsing: token ?? ""))?.algorithm ?? "" }
    }

    struct Signature: Sendable, CustomTestStringConvertible {
        let id: String
        let keys: [String]
        let jws: String
        let expected: String
        var testDescription: String { id }
    }

    static let folder = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../Vectors")
        .standardizedFileURL

    static let jwtExamples: [JWTExample] = lines("jwt_examples.jsonl").map { line in
        JWTExample(
            name: line["name"] as? String ?? "", keys: keys(line), token: line["token"] as? String,
            now: (line["now"] as? NSNumber)?.doubleValue ?? .nan, user: line["expected_user"] as? String,
            userIDs: line["payload_user_ids"] as? [String] ?? [], expected: line["expected"] as? String ?? "",
            expectedAny: line["expected_any"] as? [String] ?? [])
    }

    static let signatures: [Signature] = lines("rfc_jws.jsonl").map { line in
        Signature(
            id: line["id"] as? String ?? "", keys: keys(line), jws: line["jws"] as? String ?? "",
            expected: line["expected"] as? String ?? "")
    }

    private static func keys(_ line: [String: Any]) -> [String] {
        (line["keys"] as? [Any] ?? []).map { key in
            if let text = key as? String { return text }
            let data = try? JSONSerialization.data(withJSONObject: key)
            return String(decoding: data ?? Data(), as: UTF8.self)
        }
    }

    private static func lines(_ file: String) -> [[String: Any]] {
        let text = (try? String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").compactMap {
            try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
    }
}
