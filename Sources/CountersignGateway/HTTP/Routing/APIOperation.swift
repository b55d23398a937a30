internal import CountersignCore

/// What `/openapi.json` says of an endpoint beside its method and path.
struct APIOperation: Sendable {
    /// What a request must carry.
    enum Credential: Sendable {
        case none
        /// Any of a native write key's places, with a token where the app asks for one.
        case writeKey
        case apiKey
        case projectKey
        case accessToken
    }

    /// Whose shape a refusal has.
    enum Shape: String, Sendable {
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

    /// A reference to a schema of the document.
    static func schema(_ name: String) -> JSONValue { ["$ref": .string("#/components/schemas/\(name)")] }
}
