internal import CountersignCore
package import GatewayHTTP
internal import GatewayModel

/// The native dialect: Segment's public HTTP API with an additional signed-user token.
package struct NativeDialect: Dialect {
    let path: RequestPath
    let publicURL: String?
    /// Whether the gateway itself serves HTTPS.
    let isSecure: Bool

    package init(path: RequestPath, publicURL: String?, isSecure: Bool) {
        self.path = path
        self.publicURL = publicURL
        self.isSecure = isSecure
    }

    package var requestHeaders: [String] { ["X-Countersign-Signature", "X-Retry-Count", "X-Write-Key"] }

    package var credentialHeaders: [StaticString] { ["x-countersign-signature", "x-write-key"] }

    package var endpoints: [Endpoint] { (ingestion + shortEndpoints + [settings]).map(\.forPages) }

    private var ingestion: [Endpoint] {
        [
            Endpoint(method: "POST", path: "/v1/batch") { request, _ throws(HTTPResponse) in
                try ingest(request, single: nil)
            }.described(.ingest("Store a batch of events", body: "Batch"))
        ]
            + EventKind.all.map { kind in
                Endpoint(method: "POST", path: "/v1/\(kind.rawValue)") { request, _ throws(HTTPResponse) in
                    try ingest(request, single: kind)
                }.described(.ingest("Store one \(kind.rawValue) event", body: "Event"))
            }
    }

    /// The paths of Segment's mobile and web clients, and of its historical import.
    private var shortEndpoints: [Endpoint] {
        ["/v1/b", "/v1/import"].map { path in
            Endpoint(method: "POST", path: path) { request, _ throws(HTTPResponse) in
                try ingest(request, single: nil)
            }.described(.ingest("Store a batch of events, as /v1/batch does", body: "Batch"))
        }
            + EventKind.all.map { kind in
                Endpoint(method: "POST", path: "/v1/\(kind.rawValue.prefix(1))") {
                    request, _ throws(HTTPResponse) in
                    try ingest(request, single: kind)
                }.described(
                    .ingest("Store one \(kind.rawValue) event, as /v1/\(kind.rawValue) does", body: "Event"))
            }
    }

    /// The integrations and the host for events, which Segment's mobile and web clients load at start.
    private var settings: Endpoint {
        Endpoint(method: "GET", path: "/v1/projects/{writeKey}/settings") {
            request, parameters throws(HTTPResponse) in
            guard let writeKey = parameters.first.map(String.init),
                let app = path.apps.app(writeKey: writeKey)
            else {
                throw request.failure(404, "invalid_write_key", "no app has this write key")
            }
            request.context.appID = app.id
            var integration: JSONObject = [
                "apiKey": .string(writeKey), "addBundledMetadata": false, "unbundledIntegrations": [],
            ]
            if let origin = origin(of: request) {
                integration["apiHost"] = .string(origin.authority + "/v1")
                // The default is https, the only scheme that mobile clients support.
                if !origin.isSecure { integration["protocol"] = "http" }
            }
            let everything: JSONValue = ["__default": ["enabled": true, "integrations": [:]]]
            var body: [UInt8] = []
            JSONValue.object([
                "integrations": ["Segment.io": .object(integration)],
                "plan": ["track": everything, "identify": everything, "group": everything],
                "middlewareSettings": [:], "enabledMiddleware": [:], "edgeFunction": [:], "remotePlugins": [],
                "metrics": ["sampleRate": 0], "legacyVideoPluginsEnabled": false,
            ]).write(to: &body)
            return .answer(.json(200, body).with("Cache-Control", "no-store"))
        }.described(
            APIOperation(
                summary: "Read the settings that Segment's mobile and web clients ask for", rejections: [404])
        )
    }

    private func origin(of request: HTTPRequest) -> (authority: String, isSecure: Bool)? {
        if let publicURL {
            let parts = publicURL.split(separator: "/", omittingEmptySubsequences: true)
            guard parts.count >= 2 else { return nil }
            return (parts.dropFirst().joined(separator: "/"), parts[0] == "https:")
        }
        return request.header("host").flatMap { $0.isEmpty ? nil : ($0, isSecure) }
    }

    private func ingest(
        _ request: HTTPRequest, single: EventKind?
    ) throws(HTTPResponse) -> HTTPOutcome {
        let credentials = try Credentials(request)
        var named: AdmittedApp?
        if let key = credentials.writeKey {
            named = path.apps.app(writeKey: key)
            // Rejects an unknown key before parsing the body, so that such a request costs little time.
            if named == nil { throw Credentials.unknownWriteKey(request) }
        }
        let contents = try path.parsers.parseEvents(
            request,
            isolate: { body in
                if single == nil {
                    body.isolateElements(of: ["batch"], times: ["timestamp"])
                } else {
                    body.clearTimes(["timestamp"], at: body.root)
                }
            }
        ) { root, events throws(RejectedBody) in
            try NativeDecoder(
                root, single: single, events,
                isKnown: {
                    named = named ?? $0.flatMap(path.apps.app(writeKey:))
                    return named != nil
                })
        }
        guard let app = named else {
            throw Credentials.unknownWriteKey(request)
        }
        let admission = AdmissionRequest(
            credential: credentials.user, userIDs: contents.events.userIDs.ids, deviceTime: contents.sentAt)
        let (_, warning) = try path.admit(admission, app: app, request: request)
        return path.store(contents.events, of: app, dialect: "native") { result in
            switch result {
            case .success(let outcome):
                .ingested(outcome, contents.events, warning: warning, failsWithoutEvents: true)
            case .failure(let failure): failure.response(request)
            }
        }
    }
}

extension APIOperation {
    private static let writeKey = SecurityScheme.header("X-Write-Key", as: "writeKey")
    private static let basicWriteKey = SecurityScheme(
        "basicWriteKey",
        [
            "type": "http", "scheme": "basic",
            "description": "The write key as user name, without a password",
        ])
    private static let signature = SecurityScheme.header("X-Countersign-Signature", as: "signature")

    fileprivate static func ingest(_ summary: String, body: String) -> APIOperation {
        APIOperation(
            summary: summary,
            security: [
                [writeKey], [writeKey, .bearerToken], [basicWriteKey], [basicWriteKey, signature],
            ],
            body: schema(body), answer: schema("Stored"))
    }
}
