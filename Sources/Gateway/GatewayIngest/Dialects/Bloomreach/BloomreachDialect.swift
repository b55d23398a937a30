internal import CountersignCore
package import GatewayHTTP
package import GatewayModel

/// The endpoints for clients of Bloomreach Engagement (Exponea); an app is a project.
/// `docs/guides/move-from/bloomreach.md` lists the differences from the vendor.
package struct BloomreachDialect: Dialect {
    let path: RequestPath
    let customers: any CustomerStore
    let webhooks: WebhookSender

    package init(path: RequestPath, customers: any CustomerStore, webhooks: WebhookSender) {
        self.path = path
        self.customers = customers
        self.webhooks = webhooks
    }

    /// Makes the router answer unknown paths with these prefixes in the dialect's format.
    package var rejection: Router.Rejection? {
        Router.Rejection(prefixes: ["/track/v2/", "/data/v2/", "/webxp/", "/wxstatic/", "/campaigns/"]) {
            status, _, reason, request in BloomreachAnswer.failure(status, reason, request)
        }
    }

    package var requestHeaders: [String] { ["X-Countersign-Signature"] }

    package var credentialHeaders: [StaticString] { ["x-countersign-signature"] }

    package var endpoints: [Endpoint] {
        (tracking + content + inbox + emptyEndpoints + [selfCheck]).map(\.forPages)
    }

    private var tracking: [Endpoint] {
        let project = "/track/v2/projects/{token}"
        return [
            endpoint(
                "POST", project + "/customers", .key, "Update a customer",
                body: APIOperation.schema("CustomerUpdate")
            ) { call throws(HTTPResponse) in
                try BloomreachTracking(call: call, kind: .customer).outcome()
            },
            endpoint(
                "POST", project + "/customers/events", .key, "Store an event of a customer",
                body: APIOperation.schema("CustomerEvent")
            ) { call throws(HTTPResponse) in
                try BloomreachTracking(call: call, kind: .event).outcome()
            },
            endpoint(
                "POST", project + "/campaigns/clicks", .key, "Store a click on a campaign",
                body: APIOperation.schema("CampaignClick")
            ) { call throws(HTTPResponse) in
                try BloomreachTracking(call: call, kind: .campaignClick).outcome()
            },
        ]
    }

    private var content: [Endpoint] {
        let consents = "/data/v2/projects/{token}/consent/categories"
        return [
            endpoint(
                "POST", "/data/v2/projects/{token}/customers/attributes", .key,
                "Read attributes of a customer", body: APIOperation.schema("AttributesRequest")
            ) {
                call throws(HTTPResponse) in
                try BloomreachAttributes(call: call, customers: customers).outcome()
            },
            // The vendor's documentation says POST; existing clients send GET without a body.
            endpoint("GET", consents, .key, "List the categories of consent") {
                .answer($0.app.answers.consents)
            },
            endpoint("POST", consents, .key, "List the categories of consent") {
                .answer($0.app.answers.consents)
            },
            endpoint(
                "POST", "/webxp/s/{token}/inappmessages", .key, "List the in-app messages of a customer",
                body: APIOperation.schema("CustomerRequest")
            ) { call throws(HTTPResponse) in
                let identifiers = try call.body { root throws(HTTPResponse) in
                    try call.identifiers(root)
                }
                _ = try call.admit(identifiers)
                return .answer(call.app.answers.inAppMessages(query: call.request.query))
            },
        ]
    }

    private var inbox: [Endpoint] {
        [
            endpoint(
                "POST", "/webxp/projects/{token}/appinbox/fetch", .inbox, "Fetch the App Inbox of a customer",
                body: APIOperation.schema("InboxFetch")
            ) {
                call throws(HTTPResponse) in
                try BloomreachInbox(call: call, customers: customers).fetch()
            },
            endpoint(
                "POST", "/webxp/projects/{token}/appinbox/markasread", .inbox,
                "Mark messages of the App Inbox as read", body: APIOperation.schema("InboxMark")
            ) {
                call throws(HTTPResponse) in
                try BloomreachInbox(call: call, customers: customers).markAsRead()
            },
        ]
    }

    /// Endpoints that existing clients call at start. The responses are valid and empty.
    private var emptyEndpoints: [Endpoint] {
        let none = BloomreachAnswer.success([("data", Array("[]".utf8))])
        return [
            endpoint(
                "GET", "/wxstatic/projects/{token}/bundle-ios.json", .either,
                "Return no content blocks for iOS"
            ) { _ in .answer(none) },
            endpoint(
                "GET", "/wxstatic/projects/{token}/bundle-android.json", .either,
                "Return no content blocks for Android"
            ) { _ in .answer(none) },
            endpoint(
                "POST", "/webxp/s/{token}/inappcontentblocks", .either, "Return no personalised content"
            ) { _ in .answer(none) },
            endpoint(
                "GET", "/webxp/projects/{token}/segments", .either, "Return no segments of a customer"
            ) { _ in
                .answer(.json(200, Array("{}".utf8)))
            },
            endpoint(
                "POST", "/webxp/projects/{token}/cookies/{cookie}/link-ids", .either, "Link ids to a cookie"
            ) { _ in
                .answer(BloomreachAnswer.success())
            },
        ]
    }

    private var selfCheck: Endpoint {
        Endpoint(method: "POST", path: "/campaigns/send-self-check-notification") {
            request, _ throws(HTTPResponse) in
            let call = try BloomreachCall(
                request, project: QueryString.value(of: "project_id", in: request.query) ?? "", access: .key,
                path: path)
            return try BloomreachSelfCheck(call: call, webhooks: webhooks).outcome()
        }.described(
            Self.operation(
                "Hand a test push to the project's webhook", body: APIOperation.schema("SelfCheck"),
                query: [("project_id", true, ["type": "string"])]))
    }

    private static let projectKey = APIOperation.SecurityScheme(
        "projectKey",
        [
            "type": "apiKey", "in": "header", "name": "Authorization",
            "description": "`Token` and the app's write key",
        ])

    private static func operation(
        _ summary: String, body: JSONValue?,
        query: [(name: String, isRequired: Bool, schema: JSONValue)] = []
    ) -> APIOperation {
        var operation = APIOperation(
            summary: summary, security: [[projectKey], [.bearerToken]], query: query, body: body,
            answer: APIOperation.schema("BloomreachSuccess"), rejections: [404, 410, 422],
            failure: "BloomreachFailure")
        operation.parts = ["cookie": ["type": "string", "minLength": 1]]
        return operation
    }

    private func endpoint(
        _ method: String, _ template: String, _ access: BloomreachAccess, _ summary: String,
        body: JSONValue? = nil,
        _ handle: @escaping @Sendable (BloomreachCall) throws(HTTPResponse) -> HTTPOutcome
    ) -> Endpoint {
        Endpoint(method: method, path: template) { request, parameters throws(HTTPResponse) in
            try handle(
                BloomreachCall(request, project: parameters.first ?? "", access: access, path: path))
        }.described(Self.operation(summary, body: body))
    }
}
