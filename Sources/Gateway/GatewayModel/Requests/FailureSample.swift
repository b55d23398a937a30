package import CountersignCore
internal import CountersignCrypto
package import CountersignJOSE
internal import CountersignJSON
internal import Foundation

/// A sample of a request with a missing or invalid token, for diagnosis. The signature is never written to disk,
/// so the token cannot be replayed.
package struct FailureSample: Sendable {
    package var id: String
    package var appID: String
    package var atMilliseconds: Int64
    package var code: AuthErrorCode
    package var verdict: VerdictKind
    package var endpoint: String
    package var userID: String?
    package var client: ClientInfo
    /// The truncated network address: `192.0.2.0/24`, `2001:db8::/48`.
    package var network: String
    package var enforcement: Enforcement
    package var requestID: String
    package var checks: [Check]
    /// The decoded header and claims as JSON; nil if unreadable.
    package var header: String?
    package var claims: String?
    /// The token up to its last dot; empty if not a JWS or above 8 KiB.
    package var tokenWithoutSignature: String

    package init(
        id: String, appID: String, atMilliseconds: Int64, code: AuthErrorCode, verdict: VerdictKind,
        endpoint: String, userID: String? = nil, client: ClientInfo, network: String,
        enforcement: Enforcement, requestID: String, checks: [Check], header: String? = nil,
        claims: String? = nil, tokenWithoutSignature: String
    ) {
        self.id = id
        self.appID = appID
        self.atMilliseconds = atMilliseconds
        self.code = code
        self.verdict = verdict
        self.endpoint = endpoint
        self.userID = userID
        self.client = client
        self.network = network
        self.enforcement = enforcement
        self.requestID = requestID
        self.checks = checks
        self.header = header
        self.claims = claims
        self.tokenWithoutSignature = tokenWithoutSignature
    }

    package struct Check: Sendable, Equatable {
        package var name: String
        /// Nil when the check was not performed.
        package var isOK: Bool?
        package var detail: String

        package init(name: String, isOK: Bool?, detail: String) {
            self.name = name
            self.isOK = isOK
            self.detail = detail
        }
    }

    package static func checks(_ report: VerificationReport) -> [Check] {
        VerificationCheck.list(of: report, withUser: true).map { check in
            let isOK: Bool? =
                switch check.outcome {
                case .passed: true
                case .failed: false
                case .notJudged: nil
                }
            return Check(name: check.name, isOK: isOK, detail: check.details.joined(separator: "; "))
        }
    }

    /// The JSON text of a token's part; nil if it is longer than 8 KiB or not valid JSON.
    package static func json(_ part: Substring?) -> String? {
        guard let part, let bytes = Base64URL.decode(String(part)), bytes.count <= 8_192,
            (try? StrictJSONParser(maximumBytes: 8_192, maximumDepth: 32).parse(bytes: bytes) { _ in true })
                == true
        else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    package static func network(of address: String) -> String {
        // Longer text is not an address, and parsing text from a client could be slow.
        guard address.utf8.count <= 64, let client = NetworkAddress(address)?.untranslated else { return "" }
        if client.isV4 {
            let bytes = [24, 16, 8].map { String(client.low >> UInt64($0) & 0xFF) }
            return bytes.joined(separator: ".") + ".0/24"
        }
        var bytes = in6_addr()
        withUnsafeMutableBytes(of: &bytes) {
            $0.storeBytes(of: client.network.high.bigEndian, as: UInt64.self)
        }
        var text = [CChar](repeating: 0, count: 64)
        inet_ntop(AF_INET6, &bytes, &text, 64)
        return text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" } + "/48"
    }
}
