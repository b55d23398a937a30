internal import CountersignCore
internal import CountersignJOSE
internal import CountersignTransport
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

struct Trigger: Sendable {
    struct Answer: Sendable {
        let status: Int
        /// The error code in the response; nil without one, as when the token was accepted.
        let code: AuthErrorCode?
        let requestID: String?

        /// Whether the response has this code; nil means accepted.
        func `is`(_ wanted: AuthErrorCode?) -> Bool {
            code == wanted && status == (wanted == nil ? 200 : 401)
        }
    }

    private static let userID = "trigger-user"

    private let url: URL
    private let apps: TriggerApps
    private let transport = makeDefaultTransport()

    init(_ apps: TriggerApps, url: URL) {
        self.apps = apps
        self.url = url
    }

    var all: [AuthErrorCode?] {
        [nil] + AuthErrorCode.all.filter { Provocation.all[$0] != nil }
    }

    /// Sends a request that must get this code; nil means an accepted request. Retries for three seconds, because a
    /// running gateway may need a second to load changes. Throws `usage` for a code that cannot be provoked.
    func send(_ code: AuthErrorCode?) async throws -> Answer {
        let provocation = code.flatMap { Provocation.all[$0] }
        if let code, provocation == nil {
            throw CommandError(
                .usage, "no request reliably gets \(code.reason), so it cannot be triggered",
                hint: "`countersign trigger all` triggers every code that can be triggered")
        }
        let app = try await apps.app()
        let token = try await token(by: provocation, of: app)
        let isOfTwoUsers = if case .twoUsers? = provocation { true } else { false }
        var answer = try await post(token, to: app, isOfTwoUsers: isOfTwoUsers)
        for _ in 0..<30 where !answer.is(code) {
            try await Task.sleep(nanoseconds: 100_000_000)
            answer = try await post(token, to: app, isOfTwoUsers: isOfTwoUsers)
        }
        return answer
    }

    private func token(by provocation: Provocation?, of app: TriggerApp) async throws -> String? {
        let key = app.key
        let now = Int64(Date().timeIntervalSince1970)
        var claims: JSONObject = [
            "sub": .string(Self.userID), "iat": .integer(now), "exp": .integer(now + Provocation.lifetime),
            "aud": .string(TriggerApp.audience), "iss": .string(TriggerApp.issuer),
        ]
        switch provocation {
        case .noToken?: return nil
        case .text(let text)?: return text
        case .otherAlgorithm?:
            return try key.sign(
                header: Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8), payload: JSONValue.object(claims).bytes)
        case .otherKey?: return try SigningKey.generate(key.algorithm).sign(claims: claims)
        case .endedSession?: return try await revokedToken(of: app)
        case .claims(let spoil)?: spoil(&claims, now)
        case .twoUsers?, nil: break
        }
        return try key.sign(claims: claims)
    }

    private func revokedToken(of app: TriggerApp) async throws -> String {
        let admin = apps.admin
        let opened = try await admin.post("apps", app.id, "sessions", body: ["user": .string(Self.userID)])
        let body: JSONValue = ["refresh_token": opened["refresh_token"]]
        var answer = TransportResponse(status: 0)
        for _ in 0..<30 {
            answer = try await request(
                "api/refresh_token", [("Content-Type", "application/json")], body.bytes)
            if answer.status == 200 { break }
            try await Task.sleep(nanoseconds: 100_000_000)
        }
        guard let token = JSONValue(parsing: answer.body)?["accessToken"].text else {
            throw CommandError(.failed, "the gateway issued no access token: status \(answer.status)")
        }
        try await admin.delete("apps", app.id, "sessions", opened["id"].shown)
        return token
    }

    private func post(_ token: String?, to app: TriggerApp, isOfTwoUsers: Bool) async throws -> Answer {
        var events = [event(of: Self.userID)]
        if isOfTwoUsers { events.append(event(of: "another-user")) }
        var headers = [("Content-Type", "application/json"), ("X-Write-Key", app.writeKey)]
        if let token { headers.append(("Authorization", "Bearer \(token)")) }
        let response = try await request(
            "v1/batch", headers, JSONValue.object(["batch": .array(events)]).bytes)
        let code = JSONValue(parsing: response.body)?["auth_error"]["error_code"].integer
        return Answer(
            status: response.status, code: code.map { AuthErrorCode(rawValue: Int($0)) },
            requestID: response.header("X-Request-Id"))
    }

    private func event(of userID: String) -> JSONValue {
        [
            "type": "track", "event": "Triggered", "messageId": .string(UUIDv7.make()),
            "userId": .string(userID),
            "context": ["library": ["name": "countersign-trigger", "version": .string(countersignVersion)]],
        ]
    }

    private func request(
        _ path: String, _ headers: [(String, String)], _ body: [UInt8]
    ) async throws -> TransportResponse {
        let target = url.appendingPathComponent(path)
        do {
            return try await transport.send(
                TransportRequest(
                    url: target, headers: headers.map { (name: $0.0, value: $0.1) }, body: body))
        } catch {
            throw CommandError(
                .unavailable, "the gateway at \(url.absoluteString) does not answer: \(error)",
                hint: "`countersign doctor` looks for the reason")
        }
    }
}
