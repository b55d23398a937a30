package import CountersignCore

/// A protocol that clients use with the gateway, such as Segment's. Consists of endpoints and of settings for
/// the layers before them.
///
/// The router, CORS and the OpenAPI document are built from one list of dialects. The endpoints decode, store
/// and respond.
package protocol Dialect: Sendable {
    /// The endpoints. The description of each names the credentials it accepts.
    var endpoints: [Endpoint] { get }

    /// The schemas referenced by the endpoints' descriptions, by name. Dialects may share a schema.
    var schemas: JSONObject { get }

    /// The header fields that its clients send from web pages, in addition to the common ones.
    var requestHeaders: [String] { get }

    /// The format of errors for unknown paths and methods; nil uses the native format.
    var refusal: Router.Refusal? { get }
}

extension Dialect {
    package var schemas: JSONObject { [:] }
    package var requestHeaders: [String] { [] }
    package var refusal: Router.Refusal? { nil }
}
