package import CountersignCore

/// What `/openapi.json` says of an endpoint beside its method and path.
package struct APIOperation: Sendable {
    /// A way to carry a credential, by the name that the document gives it.
    package struct SecurityScheme: Sendable {
        let name: String
        let json: JSONValue

        package init(_ name: String, _ json: JSONValue) {
            self.name = name
            self.json = json
        }

        /// A field of the header.
        package static func header(_ field: String, as name: String) -> SecurityScheme {
            SecurityScheme(name, ["type": "apiKey", "in": "header", "name": .string(field)])
        }

        /// A JWT in `Authorization: Bearer` (RFC 6750, section 2.1).
        package static let bearerToken = SecurityScheme(
            "bearerToken", ["type": "http", "scheme": "bearer", "bearerFormat": "JWT"])
    }

    /// One line, without a full stop.
    var summary: String
    /// What a request must carry: all of one row. Empty when it needs nothing.
    var security: [[SecurityScheme]] = []
    /// The schemas of parts of the path that are no ids of apps or projects.
    package var parts: JSONObject = [:]
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
    /// The schema of its own refusals. What is refused before an endpoint is a `Failure`.
    var failure = "Failure"

    package init(
        summary: String, security: [[SecurityScheme]] = [],
        query: [(name: String, isRequired: Bool, schema: JSONValue)] = [],
        body: JSONValue? = nil, bodyTypes: [String] = ["application/json"], status: Int = 200,
        contentType: String = "application/json", answer: JSONValue? = nil,
        refusals: [Int] = [], failure: String = "Failure"
    ) {
        self.summary = summary
        self.security = security
        self.query = query
        self.body = body
        self.bodyTypes = bodyTypes
        self.status = status
        self.contentType = contentType
        self.answer = answer
        self.refusals = refusals
        self.failure = failure
    }

    /// The names of its query parameters.
    package var parameters: [String] { query.map(\.name) }

    /// A reference to a schema of the document.
    package static func schema(_ name: String) -> JSONValue {
        ["$ref": .string("#/components/schemas/\(name)")]
    }
}
