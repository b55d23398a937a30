internal import Foundation

/// Sends requests to a gateway, with or without a connection.
package protocol TestClient {
    /// Returns nil without a complete response.
    func send(
        _ method: String, _ target: String, _ headers: [String: String], _ body: [UInt8]?
    ) -> TestAnswer?
}

package struct TestAnswer {
    package var status: Int
    /// By lower-case name.
    package var headers: [String: String]
    package var body: String

    /// The body as a JSON object; empty for other bodies.
    package var json: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(body.utf8))) as? [String: Any] ?? [:]
    }
}

/// The header fields of a request, including the required ones.
func requestFields(_ headers: [String: String], _ body: [UInt8]?) -> [(name: String, value: String)] {
    var fields = headers.map { (name: $0.key, value: $0.value) }
    if !headers.keys.contains(where: { $0.lowercased() == "host" }) { fields.append(("Host", "localhost")) }
    if let body { fields.append(("Content-Length", "\(body.count)")) }
    return fields
}
