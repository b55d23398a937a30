package import CountersignGatewayTesting

extension TestClient {
    /// Sends a batch and returns the answer.
    package func post(_ body: String, path: String = "/v1/batch", headers: [String: String] = [:])
        -> TestAnswer?
    {
        post(bytes: Array(body.utf8), path: path, headers: headers)
    }

    package func post(bytes: [UInt8], path: String = "/v1/batch", headers: [String: String] = [:])
        -> TestAnswer?
    {
        send("POST", path, headers, bytes)
    }

    package func get(_ path: String, headers: [String: String] = [:]) -> TestAnswer? {
        send("GET", path, headers, nil)
    }
}

/// A track event as JSON.
package func trackEvent(_ messageID: String, user: String? = "user-1", extra: String = "") -> String {
    let identity = user.map { #""userId":"\#($0)""# } ?? #""anonymousId":"a-1""#
    return #"{"type":"track","event":"Order Placed","messageId":"\#(messageID)",\#(identity)\#(extra)}"#
}

/// A batch of these events as JSON.
package func batch(_ events: String...) -> String { #"{"batch":[\#(events.joined(separator: ","))]}"# }
