internal import CountersignCore
internal import CountersignJOSE
internal import CountersignJSON
package import GatewayHTTP
internal import GatewayModel

/// The endpoints for Transistorsoft's SDKs: upload of locations with an access token, and the tokens.
///
/// The token is the only credential. It names the app in `aud` or `iss` unless the path does, and its subject
/// is the user. It must therefore be valid regardless of the app's enforcement.
package struct GeolocationDialect: Dialect {
    let path: RequestPath
    let tokens: TokenService

    package init(path: RequestPath, tokens: TokenService) {
        self.path = path
        self.tokens = tokens
    }

    package var endpoints: [Endpoint] {
        (uploads + GeolocationTokens(service: tokens, parsers: path.parsers).endpoints).map(\.forPages)
    }

    private var uploads: [Endpoint] {
        [
            Endpoint(method: "POST", path: "/api/locations") { request, _ throws(HTTPResponse) in
                try upload(request, project: nil)
            }.described(Self.operation),
            Endpoint(method: "POST", path: "/api/locations/{project}") {
                request, parameters throws(HTTPResponse) in
                try upload(request, project: parameters[0])
            }.described(Self.operation),
        ]
    }

    private static let operation = APIOperation(
        summary: "Store locations under an access token", security: [[.bearerToken]],
        body: ["type": ["object", "array"]], answer: APIOperation.schema("Stored"))

    private func upload(
        _ request: HTTPRequest, project: Substring?
    ) throws(HTTPResponse) -> HTTPOutcome {
        let credential = Self.credential(request)
        let named = project.flatMap { path.apps.app(projectToken: $0) }
        guard
            let app = named ?? credential.token.flatMap({ path.apps.app(issuedFor: $0) ?? app(namedBy: $0) })
        else {
            throw request.failure(
                401, "unknown_app", "neither the path nor aud or iss of the access token names an app"
            ).with("WWW-Authenticate", "Bearer")
        }
        let (user, _) = try path.admit(AdmissionRequest(credential: credential), app: app, request: request)
        let contents = try path.parsers.parseEvents(request, isolate: { $0.isolateLocations() }) {
            root, events throws(RejectedBody) in
            try GeolocationDecoder(root, user: user, events)
        }
        return path.store(contents.events, of: app, body: contents.body, dialect: "geolocation") {
            switch $0 {
            case .success(let outcome): .ingested(outcome, contents.events, warning: nil)
            case .failure(let failure): failure.response(request)
            }
        }
    }

    /// The token after `Bearer` (authorization strategy JWT) or without a scheme (strategy SAS).
    private static func credential(_ request: HTTPRequest) -> Credential {
        guard let value = request.header("authorization") else { return Credential(.accessToken, nil) }
        let parts = value.split(separator: " ", maxSplits: 1)
        let isBearer = parts.count == 2 && parts[0].lowercased() == "bearer"
        return Credential(.accessToken, isBearer ? String(parts[1]) : value)
    }

    /// The app named in the unverified token. Used only to choose the keys.
    private func app(namedBy token: String) -> AdmittedApp? {
        guard let jws = try? CompactJWS(parsing: token) else { return nil }
        let names = try? StrictJSONParser(maximumBytes: CompactJWS.maximumBytes).parse(bytes: jws.payload) {
            claims in
            [claims["aud"]?.string].compactMap(\.self) + (claims["aud"]?.elements.compactMap(\.string) ?? [])
                + [claims["iss"]?.string].compactMap(\.self)
        }
        return names?.lazy.compactMap { path.apps.app(id: $0) ?? path.apps.app(projectToken: $0) }.first
    }
}
