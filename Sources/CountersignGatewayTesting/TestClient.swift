internal import Foundation

/// Sends requests to a gateway, over a connection or without one.
package protocol TestClient {
    /// Sends a request; nil when it was not answered to the end.
    func send(
        _ method: String, _ target: String, _ headers: [String: String], _ body: [UInt8]?
    ) -> TestAnswer?
}

/// What a gateway has answered.
package struct TestAnswer {
    package var status: Int
    /// By name in lower case.
    package var headers: [String: String]
    package var body: String

    /// The body as a JSON object; empty when it is none.
    package var json: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(body.utf8))) as? [String: Any] ?? [:]
    }
}

/// The header fields of a request, with those that every request has.
func requestFields(_ headers: [String: String], _ body: [UInt8]?) -> [(name: String, value: String)] {
    var fields = headers.map { (name: $0.key, value: $0.value) }
    if !headers.keys.contains(where: { $0.lowercased() == "host" }) { fields.append(("Host", "localhost")) }
    if let body { fields.append(("Content-Length", "\(body.count)")) }
    return fields
}
