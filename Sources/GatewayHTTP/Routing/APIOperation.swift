package import CountersignCore

/// What `/openapi.json` says of an endpoint beside its method and path.
package struct APIOperation: Sendable {
    /// What a request must carry.
    package enum Credential: Sendable {
        case none
        /// Any of a native write key's places, with a token where the app asks for one.
        case writeKey
        case apiKey
        case projectKey
        case accessToken
    }

    /// Whose shape a refusal has.
    package enum Shape: String, Sendable {
        case native = "Failure"
        case bloomreach = "BloomreachFailure"
        /// RFC 6749, section 5.2.
        case oauth = "OAuthFailure"
    }

    /// One line, without a full stop.
    var summary: String
    var credential = Credential.none
    /// Query parameters, each with whether it must be there.
    var query: [(name: String, isRequired: Bool, schema: JSONValue)] = []
    /// The schema of the body; nil takes none.
    var body: JSONValue?
    /// What the body may be sent as.
    var bodyTypes = ["application/json"]
    var status = 200
    var contentType = "application/json"
    /// The schema of the answer; nil leaves it open.
    var answer: JSONValue?
    /// The statuses of refusals that this endpoint has of its own.
    var refusals: [Int] = []
    var shape = Shape.native

    package init(
        summary: String, credential: GatewayHTTP.APIOperation.Credential = Credential.none,
        query: [(name: String, isRequired: Bool, schema: CountersignCore.JSONValue)] = [],
        body: CountersignCore.JSONValue? = nil, bodyTypes: [String] = ["application/json"], status: Int = 200,
        contentType: String = "application/json", answer: CountersignCore.JSONValue? = nil,
        refusals: [Int] = [], shape: GatewayHTTP.APIOperation.Shape = Shape.native
    ) {
        self.summary = summary
        self.credential = credential
        self.query = query
        self.body = body
        self.bodyTypes = bodyTypes
        self.status = status
        self.contentType = contentType
        self.answer = answer
        self.refusals = refusals
        self.shape = shape
    }

    /// A reference to a schema of the document.
    package static func schema(_ name: String) -> JSONValue {
        ["$ref": .string("#/components/schemas/\(name)")]
    }
}
