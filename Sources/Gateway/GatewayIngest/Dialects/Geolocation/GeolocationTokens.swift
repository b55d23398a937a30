internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct GeolocationTokens: Sendable {
    /// The maximum size of a device id in bytes.
    private static let longestDevice = 128

    let service: TokenService
    let parsers: ParserPool

    var endpoints: [Endpoint] {
        [
            Endpoint(method: "POST", path: "/api/register") { request, _ in
                service.answering { () throws(OAuthError) in try register(request) }
            }.described(Self.registration),
            Endpoint(method: "POST", path: "/api/refresh_token") { request, _ in
                service.answering { () throws(OAuthError) in try refresh(request) }
            }.described(Self.refreshing),
        ]
    }

    /// Opens a token family for an unauthenticated device. The family's subject is `device:` and the device's
    /// id. ``TokenFamilyDirectory`` opens no family with such a subject for a user.
    private func register(_ request: HTTPRequest) throws(OAuthError) -> HTTPOutcome {
        if let unit = request.limitedUnit { try service.limit("address \(unit)") }
        let fields = try read(request) { body in
            (
                EventIdentifier(body["org"]),
                // The SDKs send strings. A number would equal the id of a device registered with its digits as text.
                [body["uuid"], body["device_id"]].map { id in
                    id?.kind == .number ? EventIdentifier.invalid : EventIdentifier(id)
                }
            )
        }
        guard let org = fields.0.text else {
            throw OAuthError(.invalidRequest, "org must be the id of an app")
        }
        guard fields.1.allSatisfy(\.isValid), let device = fields.1.lazy.compactMap(\.text).first,
            device.utf8.count <= Self.longestDevice
        else {
            throw OAuthError(
                .invalidRequest,
                "uuid must be a string of 1 to \(Self.longestDevice) bytes that names the device")
        }
        guard let app = service.apps.app(id: org) ?? service.apps.app(projectToken: org),
            app.tokenRules.allowsRegistration
        else {
            throw OAuthError(
                .accessDenied,
                "no app with this id lets devices register; open registration in the app's token rules")
        }
        let opening = TokenFamilyTable.Opening(
            appID: app.id, subject: "device:" + device, rules: app.tokenRules)
        return service.open(opening, for: request, finish: Self.response)
    }

    private func refresh(_ request: HTTPRequest) throws(OAuthError) -> HTTPOutcome {
        let token: String?
        let type = request.header("content-type")?.lowercased() ?? ""
        if type.hasPrefix("application/json") {
            token = try read(request) { body in
                (body["refresh_token"] ?? body["refreshToken"])?.string
            }
        } else {
            let isMultipart = type.hasPrefix("multipart/form-data")
            let form = isMultipart ? try OAuthForm(multipart: request) : try OAuthForm(request)
            token = form["refresh_token"] ?? form["refreshToken"]
        }
        guard let token, !token.isEmpty else {
            throw OAuthError(
                .invalidRequest,
                "refresh_token is missing; give refreshPayload a member of that name with the value {refreshToken}"
            )
        }
        return try service.exchange(token, .anonymous, for: request, finish: Self.response)
    }

    private func read<Value>(
        _ request: HTTPRequest, _ body: (JSONNode) -> Value
    ) throws(OAuthError) -> Value {
        let result = parsers.read(request) { root in root.kind == .object ? body(root) : nil }
        switch result {
        case .success(let value?): return value
        case .success(nil): throw OAuthError(.invalidRequest, "the body is not a JSON object")
        case .failure(let invalid): throw OAuthError(.invalidRequest, invalid.reason)
        }
    }

    /// `expires` is in seconds since 1970. A client that expects a duration refreshes only after a 401. If `expires`
    /// were a duration, a client that expects a time would refresh before each request.
    private static func response(_ pair: IssuedPair) -> HTTPResponse {
        var members: JSONObject = [
            "accessToken": .string(pair.accessToken), "expires": .integer(pair.expiresAt),
        ]
        members["refreshToken"] = pair.refreshToken.map { .string($0) }
        return .json(200, JSONValue.object(members).bytes)
    }

    private static let registration = APIOperation(
        summary: "Register a device and open a session for it",
        body: [
            "type": "object", "required": ["org"],
            "anyOf": [["required": ["uuid"]], ["required": ["device_id"]]],
            "properties": [
                "org": LimitedText.schema(longest: 64),
                "uuid": LimitedText.schema(longest: longestDevice),
                "device_id": LimitedText.schema(longest: longestDevice),
                "model": ["type": "string"], "manufacturer": ["type": "string"],
                "version": ["type": "string"], "platform": ["type": "string"],
                "framework": ["type": "string"],
            ],
        ], answer: APIOperation.schema("DeviceTokens"), rejections: [403], failure: "OAuthFailure")

    private static let refreshing = APIOperation(
        summary: "Exchange a refresh token", body: APIOperation.schema("DeviceRefresh"),
        bodyTypes: ["application/x-www-form-urlencoded", "multipart/form-data", "application/json"],
        answer: APIOperation.schema("DeviceTokens"), failure: "OAuthFailure")
}
