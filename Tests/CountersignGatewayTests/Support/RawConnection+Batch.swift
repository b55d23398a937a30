import Foundation

extension RawConnection {
    /// Sends a batch and returns the answer.
    func post(
        _ body: String, path: String = "/v1/batch", headers: [String: String] = [:]
    ) -> Answer? {
        post(bytes: Array(body.utf8), path: path, headers: headers)
    }

    func post(bytes: [UInt8], path: String = "/v1/batch", headers: [String: String] = [:]) -> Answer? {
        var head = "POST \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(bytes.count)\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        send(Array((head + "\r\n").utf8) + bytes)
        return answer()
    }

    func get(_ path: String) -> Answer? {
        send("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return answer()
    }
}

/// A track event as JSON.
func trackEvent(_ messageID: String, user: String? = "user-1", extra: String = "") -> String {
    let identity = user.map { #""userId":"\#($0)""# } ?? #""anonymousId":"a-1""#
    return #"{"type":"track","event":"Order Placed","messageId":"\#(messageID)",\#(identity)\#(extra)}"#
}

/// A batch of these events as JSON.
func batch(_ events: String...) -> String { #"{"batch":[\#(events.joined(separator: ","))]}"# }
