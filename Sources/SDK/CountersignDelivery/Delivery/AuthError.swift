internal import CountersignCore
package import CountersignTransport
package import Foundation

/// A Countersign server's verdict about a token, in a response of any of its protocols.
package struct AuthError: Decodable, Sendable {
    package let verdict: ServerAnswer.TokenVerdict
    package let serverTime: Date?

    private enum CodingKeys: String, CodingKey {
        case code = "error_code"
        case reason
        case serverTime = "server_time_ms"
        case clockSkew = "clock_skew_seconds"
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let code = AuthErrorCode(rawValue: try members.decode(Int.self, forKey: .code))
        verdict = ServerAnswer.TokenVerdict(
            code: code, reason: try members.decodeIfPresent(String.self, forKey: .reason) ?? code.reason,
            clockSkew: try members.decodeIfPresent(Double.self, forKey: .clockSkew))
        serverTime = try members.decodeIfPresent(Double.self, forKey: .serverTime).map {
            Milliseconds($0).date
        }
    }
}

package struct AuthErrors: Decodable, Sendable {
    package let authError: AuthError?
    package let authWarning: AuthError?

    private enum CodingKeys: String, CodingKey {
        case authError = "auth_error"
        case authWarning = "auth_warning"
    }

    /// Nil if the body is not a JSON object, or if a member about a token is malformed.
    package init?(_ response: TransportResponse) {
        guard let read = try? JSONDecoder().decode(Self.self, from: Data(response.body)) else { return nil }
        self = read
    }
}
