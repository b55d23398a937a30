package import CountersignCore

/// The description of an endpoint in `/openapi.json`, without method and path.
package struct APIOperation: Sendable {
    package struct SecurityScheme: Sendable {
        let name: String
        let json: JSONValue

        package init(_ name: String, _ json: JSONValue) {
            self.name = name
            self.json = json
        }

        package static func header(_ field: String, as name: String) -> SecurityScheme {
            SecurityScheme(name, ["type": "apiKey", "in": "header", "name": .string(field)])
        }

        /// A JWT in `Authorization: Bearer` (RFC 6750, section 2.1).
        package static let bearerToken = SecurityScheme(
            "bearerToken", ["type": "http", "scheme": "bearer", "bearerFormat": "JWT"])
    }

    /// One line, without a full stop.
    var summary: String
    /// The accepted credentials: a request needs all schemes of one row. Empty for endpoints without authentication.
    var security: [[SecurityScheme]] = []
    /// The schemas of path parameters other than app and project ids.
    package var parts: JSONObject = [:]
    var query: [(name: String, isRequired: Bool, schema: JSONValue)] = []
    var body: JSONValue?
    var bodyTypes = ["application/json"]
    var status = 200
    var contentType = "application/json"
    /// The schema of the response; nil leaves the response unspecified.
    var answer: JSONValue?
    var rejections: [Int] = []
    /// The schema of the endpoint's own errors. The server, rate limits and CORS always use the schema `Failure`.
    var failure = "Failure"

    package init(
        summary: String, security: [[SecurityScheme]] = [],
        query: [(name: String, isRequired: Bool, schema: JSONValue)] = [],
        body: JSONValue? = nil, bodyTypes: [String] = ["application/json"], status: Int = 200,
        contentType: String = "application/json", answer: JSONValue? = nil,
        rejections: [Int] = [], failure: String = "Failure"
    ) {
        self.summary = summary
        self.security = security
        self.query = query
        self.body = body
        self.bodyTypes = bodyTypes
        self.status = status
        self.contentType = contentType
        self.answer = answer
        self.rejections = rejections
        self.failure = failure
    }

    package var parameters: [String] { query.map(\.name) }

    package static func schema(_ name: String) -> JSONValue {
        ["$ref": .string("#/components/schemas/\(name)")]
    }
}
