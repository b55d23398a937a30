package import CountersignCore

/// A protocol that clients use with the gateway, such as Segment's. The router, CORS and the OpenAPI document
/// are built from one list of dialects.
package protocol Dialect: Sendable {
    /// The endpoints. The description of each names the credentials it accepts.
    var endpoints: [Endpoint] { get }

    /// The schemas referenced by the endpoints' descriptions, by name. Dialects may share a schema.
    var schemas: JSONObject { get }

    /// The header fields that the dialect's clients send from web pages, in addition to the common ones.
    var requestHeaders: [String] { get }

    /// The header fields that carry credentials, in lower case. A request may have each of them only once.
    var credentialHeaders: [StaticString] { get }

    /// The responses for unknown paths and methods of the dialect; nil for responses with an ``ErrorBody``.
    var rejection: Router.Rejection? { get }
}

extension Dialect {
    package var schemas: JSONObject { [:] }
    package var requestHeaders: [String] { [] }
    package var credentialHeaders: [StaticString] { [] }
    package var rejection: Router.Rejection? { nil }
}
