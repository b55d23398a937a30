internal import GatewayHTTP

/// Sends requests to a gateway in this process, without a connection.
package struct RouterClient: TestClient {
    let service: RequestService

    package func send(
        _ method: String, _ target: String, _ headers: [String: String], _ body: [UInt8]?
    ) -> TestAnswer? {
        let response = service.respond(
            method: method, target: target, fields: requestFields(headers, body), body: body ?? [],
            from: "127.0.0.1")
        var bytes = response.body
        // A stream without end needs a connection.
        if let page = response.stream?.page {
            do {
                while let next = try page() { bytes += next }
            } catch {
                return nil
            }
        }
        if method == "HEAD" { bytes = [] }
        var fields = ["content-length": "\(bytes.count)"]
        for (name, value) in response.headers { fields[name.lowercased()] = value }
        return TestAnswer(
            status: response.status, headers: fields, body: String(decoding: bytes, as: UTF8.self))
    }
}
