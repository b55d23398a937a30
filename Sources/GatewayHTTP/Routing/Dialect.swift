package import CountersignCore

/// A language that clients speak to the gateway: everything that the gateway has to know of it before it passes a
/// request on to one of its endpoints.
///
/// The router, the rules for web pages and the OpenAPI document are made from one list of dialects. What a dialect
/// decodes, stores and answers is its own business, in its endpoints.
package protocol Dialect: Sendable {
    /// What a client can ask for. An endpoint says by its description what credentials it takes.
    var endpoints: [Endpoint] { get }

    /// The schemas that the descriptions of its endpoints refer to, by name. Dialects may share one.
    var schemas: JSONObject { get }

    /// The fields of the header that its clients send from web pages, beside those of every request.
    var requestHeaders: [String] { get }

    /// How it says that it has no such path or method; nil says it in the native shape.
    var refusal: Router.Refusal? { get }
}

extension Dialect {
    package var schemas: JSONObject { [:] }
    package var requestHeaders: [String] { [] }
    package var refusal: Router.Refusal? { nil }
}
