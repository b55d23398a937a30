package import CountersignCore
import CountersignTesting
package import CountersignTransport
package import Foundation

/// A token server with rotation. The previous refresh token gets the current pair again. An older one revokes all.
package final class TokenServer: Sendable {
    package struct State {
        package var serial = 0
        package var isRevoked = false
        package var lifetime: Int? = 3_600
        package var override: (@Sendable (TransportRequest) -> TransportResponse?)?
        package var date: Date?
        package var reissues = 0
    }

    package let state = Lock(State())

    package init() {}

    package func override(_ body: (@Sendable (TransportRequest) -> TransportResponse?)?) {
        state.withLock { $0.override = body }
    }

    package func answer(_ request: TransportRequest) -> TransportResponse {
        if let answer = state.withLock({ $0.override })?(request) { return answer }
        let body = String(decoding: request.body, as: UTF8.self)
        return state.withLock { state in
            let serial = Int(body.replacingOccurrences(of: "refresh_token=R", with: ""))
            guard !state.isRevoked, let serial, serial >= state.serial - 1 else {
                state.isRevoked = true
                return .json(400, #"{"error":"invalid_grant"}"#)
            }
            if serial == state.serial { state.serial += 1 } else { state.reissues += 1 }
            let expiry = state.lifetime.map { #","expires_in":\#($0)"# } ?? ""
            return .json(
                200,
                #"{"access_token":"A\#(state.serial)","refresh_token":"R\#(state.serial)","token_type":"Bearer"\#(expiry)}"#,
                headers: state.date.map { [("Date", Self.httpDate($0))] } ?? [])
        }
    }

    package static func httpDate(_ date: Date) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: date)
    }
}
