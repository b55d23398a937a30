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

    package var endpoints: [Endpoint] {
        [
            ("data", "Store events and attributes in Braze's shape", ""),
            // Other endpoints that existing clients call. They store events too, and return valid, empty content.
            (
                "content_cards/sync", "Return no content cards",
                #","cards":[],"full_sync":true,"last_full_sync_at":0,"last_card_updated_at":0"#
            ), ("feature_flags/sync", "Return no feature flags", #","feature_flags":[]"#),
            ("template", "Return no templated message", #","templated_message":null"#),
        ].map { name, summary, members in
            Endpoint(method: "POST", path: "/api/v3/" + name) { request, _ throws(HTTPResponse) in
                try ingest(request, answering: members)
            }.described(
                APIOperation(
                    summary: summary, security: Self.security, body: APIOperation.schema("BrazeData"),
                    status: 201, answer: APIOperation.schema("BrazeStored"))
            ).forPages
        }
    }

    /// Stores the content of a request. `members` are added to the response, each preceded by a comma.
    private func ingest(
        _ request: HTTPRequest, answering members: String
    ) throws(HTTPResponse) -> HTTPOutcome {
        let header = request.header("x-braze-api-key")
        var named: AdmittedApp?
        if let header {
            named = path.apps.app(writeKey: header)
            // Rejects an unknown key before parsing the body, so that such a request costs little time.
            if named == nil { throw Self.unknownKey(request) }
        }
        let contents = try path.parsers.parseEvents(
            request, isolate: { $0.isolateElements(of: ["events", "attributes"], times: ["time"]) }
        ) { root, events throws(RejectedBody) in
            try BrazeDecoder(
                root, events,
                isKnown: {
                    named = named ?? $0.flatMap(path.apps.app(writeKey:))
                    return named != nil
                })
        }
        if let header, let body = contents.apiKey, !header.utf8.elementsEqual(body.utf8) {
            throw request.failure(400, "invalid_credentials", "X-Braze-Api-Key and api_key differ")
        }
        guard let app = named else {
            throw Self.unknownKey(request)
        }
        let admission = AdmissionRequest(
            credential: Credential(.userToken, request.header("x-braze-auth-signature")),
            userIDs: contents.events.userIDs.ids,
            deviceTime: contents.deviceTime)
        let (_, warning) = try path.admit(admission, app: app, request: request)
        let all = members + (contents.wantsTriggers ? #","triggers":[]"# : "")
        return path.store(contents.events, of: app, dialect: "braze") { result in
            switch result {
            case .success: Self.stored(contents.events, all, warning)
            case .failure(let failure): failure.response(request)
            }
        }
    }

    private static func unknownKey(_ request: HTTPRequest) -> HTTPResponse {
        request.failure(401, "invalid_api_key", "no app has this API key; send it in X-Braze-Api-Key")
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
