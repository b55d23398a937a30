package import GatewayHTTP
internal import GatewayModel

package struct BrazeDialect: Dialect {
    let path: RequestPath

    package init(path: RequestPath) {
        self.path = path
    }

    /// Header fields found in published bundles of Braze's Web SDK.
    package var requestHeaders: [String] {
        [
            "BRAZE-SYNC-RETRY-COUNT", "X-Braze-Api-Key", "X-Braze-Auth-Signature",
            "X-Braze-ContentCardsRequest", "X-Braze-DataRequest", "X-Braze-FeatureFlagsRequest",
            "X-Braze-Last-Req-Ms-Ago", "X-Braze-Req-Attempt", "X-Braze-Req-Tokens-Remaining",
            "X-Braze-Request-Initiated-By", "X-Braze-TriggersRequest",
        ]
    }

    package var credentialHeaders: [StaticString] { ["x-braze-api-key", "x-braze-auth-signature"] }

    private static let security: [[APIOperation.SecurityScheme]] = {
        let key = APIOperation.SecurityScheme.header("X-Braze-Api-Key", as: "apiKey")
        return [[key], [key, .header("X-Braze-Auth-Signature", as: "apiSignature")]]
    }()

    package var endpoints: [Endpoint] { ([data] + neighbours).map(\.forPages) }

    private var data: Endpoint {
        Endpoint(method: "POST", path: "/api/v3/data") { request, _ in ingest(request) }
            .described(
                APIOperation(
                    summary: "Store events and attributes in Braze's shape", security: Self.security,
                    body: APIOperation.schema("BrazeData"), status: 201,
                    answer: APIOperation.schema("BrazeStored")))
    }

    /// Other endpoints that existing clients call. The responses are valid and empty.
    private var neighbours: [Endpoint] {
        [
            (
                "content_cards/sync", "Sync content cards: none",
                #","cards":[],"full_sync":true,"last_full_sync_at":0,"last_card_updated_at":0"#
            ), ("feature_flags/sync", "Sync feature flags: none", #","feature_flags":[]"#),
            ("template", "Fetch a templated message: none", #","templated_message":null"#),
        ].map { name, summary, members in
            Endpoint(method: "POST", path: "/api/v3/" + name) { request, _ in
                ingest(request, answering: members)
            }.described(
                APIOperation(
                    summary: summary, security: Self.security, body: APIOperation.schema("BrazeData"),
                    status: 201, answer: APIOperation.schema("BrazeStored")))
        }
    }

    /// Stores the content of a request. `members` are added to the response, each preceded by a comma.
    private func ingest(_ request: HTTPRequest, answering members: String = "") -> HTTPOutcome {
        let header = request.header("x-braze-api-key")
        // With an unknown key, the body is not parsed.
        if let header, path.apps.app(writeKey: header) == nil { return .answer(Self.unknownKey(request)) }
        let decoded = path.parsers.parseEvents(
            request, isolate: { $0.isolateElements(of: ["events", "attributes"], times: ["time"]) }
        ) { root, events throws(RejectedBody) in try BrazeDecoder(root, events) }
        let contents: BrazeDecoder
        switch decoded {
        case .failed(let response): return .answer(response)
        case .value(let read): contents = read
        }
        if let header, let body = contents.apiKey, !header.utf8.elementsEqual(body.utf8) {
            return .answer(
                .failure(
                    400, code: "invalid_credentials", reason: "X-Braze-Api-Key and api_key differ",
                    requestID: request.id))
        }
        guard let key = header ?? contents.apiKey, let app = path.apps.app(writeKey: key) else {
            return .answer(Self.unknownKey(request))
        }
        let admission = AdmissionRequest(
            credential: Credential(.userToken, request.header("x-braze-auth-signature")),
            userIDs: contents.events.userIDs.ids,
            deviceTime: contents.deviceTime)
        switch path.admit(admission, app: app, request: request) {
        case .failed(let response): return .answer(response)
        case .rejected(let error): return .answer(error.rejection())
        case .accepted(_, let warning):
            let members = members + (contents.wantsTriggers ? #","triggers":[]"# : "")
            return path.store(contents.events, of: app, dialect: "braze") { result in
                switch result {
                case .success: Self.stored(contents.events, members, warning)
                case .failure(let failure): failure.response(request)
                }
            }
        }
    }

    private static func unknownKey(_ request: HTTPRequest) -> HTTPResponse {
        .failure(
            401, code: "invalid_api_key", reason: "no app has this API key; send it in X-Braze-Api-Key",
            requestID: request.id)
    }

    /// Sends 201 even if all events are invalid. It is not documented how clients react to 400. A client that
    /// repeated the request without limit would never send other events.
    private static func stored(
        _ events: DecodedEvents, _ members: String, _ warning: AuthErrorBody?
    ) -> HTTPResponse {
        let isFailure =
            !events.rejected.isEmpty && events.events.isEmpty && events.profiles.changes.isEmpty
        let verdict =
            isFailure
            ? #""message":"every event was rejected; see errors","code":"all_events_rejected""#
            : #""message":"success""#
        var body = Array(#"{\#(verdict),"errors":["#.utf8)
        for (position, event) in events.rejected.enumerated() {
            if position > 0 { body.append(UInt8(ascii: ",")) }
            event.write(to: &body)
        }
        body.append(UInt8(ascii: "]"))
        EventWarning.write(events.warnings, to: &body)
        body += members.utf8
        warning?.writeMember(to: &body)
        body.append(UInt8(ascii: "}"))
        return .json(201, body)
    }
}
