internal import CountersignCore
internal import CountersignCrypto
internal import CountersignJOSE
internal import Foundation
internal import GatewayAdmin
internal import GatewayHTTP
internal import GatewayModel

/// A development backend: signs a token for any requested user and serves a page that records events. A real
/// backend takes the user from its own sign-in.
struct DevBackend: Sendable {
    let key: SigningKey
    let tokenSeconds: Int
    let gatewayURL: String
    let writeKey: String
    /// Random part of the dashboard link's path, so that other pages cannot guess it.
    let dashboardSecret = Base64URL.encode(.random(count: 16))
    let dashboardURL: String
    let openSignInSession: @Sendable () throws -> String
    var now: @Sendable () -> Date = { Date() }

    var endpoints: [Endpoint] {
        [
            endpoint("/token", token),
            endpoint("/") { _ in
                HTTPResponse(
                    status: 200, headers: [("Content-Type", "text/html; charset=utf-8")],
                    body: Array(DevPage.html(gatewayURL: gatewayURL, writeKey: writeKey).utf8))
            },
            endpoint("/dashboard/" + dashboardSecret, signIn),
        ]
    }

    /// Accepts only local host names, to prevent DNS rebinding.
    private func endpoint(
        _ path: String, _ answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse
    ) -> Endpoint {
        Endpoint(method: "GET", path: path) { request, _ in
            guard Self.isLocal("http://" + (request.header("host") ?? "")) else {
                return .answer(
                    request.failure(421, "other_host", "the host must be 127.0.0.1 or localhost"))
            }
            return .answer(answer(request))
        }
    }

    private static func isLocal(_ url: String) -> Bool {
        ["127.0.0.1", "localhost"].contains(URLComponents(string: url)?.host)
    }

    private func token(_ request: HTTPRequest) -> HTTPResponse {
        let user = QueryString.value(of: "user", in: request.query) ?? ""
        guard !user.isEmpty else {
            return request.failure(400, "missing_user", "name the user: /token?user=user-1")
        }
        let seconds = Int64(now().timeIntervalSince1970)
        do {
            let token = try key.sign(claims: [
                "sub": .string(user), "iat": .integer(seconds),
                "exp": .integer(seconds + Int64(tokenSeconds)),
                // Makes two tokens of one user in the same second different.
                "jti": .string(UUIDv7.make()),
            ])
            let body: JSONValue = ["token": .string(token)]
            let answer = HTTPResponse.json(200, body.bytes).with("Cache-Control", "no-store")
                .with("Vary", "Origin")
            guard let origin = request.header("origin"), Self.isLocal(origin) else { return answer }
            return answer.with("Access-Control-Allow-Origin", origin)
        } catch {
            return request.failure(500, "not_signed", error.reason)
        }
    }

    /// Signs the developer in. The gateway receives the cookie too: cookies ignore ports (RFC 6265, section 8.5).
    private func signIn(_ request: HTTPRequest) -> HTTPResponse {
        guard let session = try? openSignInSession() else {
            return request.failure(500, "not_signed_in", "the session could not be stored")
        }
        let (name, value) = AdminCookie.field(session, isSecure: false)
        return HTTPResponse(
            status: 303, headers: [(name, value), ("Location", dashboardURL), ("Cache-Control", "no-store")],
            body: [])
    }
}
