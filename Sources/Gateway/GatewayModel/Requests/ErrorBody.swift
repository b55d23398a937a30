internal import CountersignCore

/// The body of an error response below `/v1`, and of dialects without their own error format.
package enum ErrorBody {
    /// `code` is a stable word in snake case. `reason` is the cause and remedy. `requestID` is nil for a request
    /// without an id.
    package static func bytes(code: String, reason: String, requestID: String?) -> [UInt8] {
        var body = Array(#"{"success":false,"code":""#.utf8)
        body.append(contentsOf: code.utf8)
        body.append(contentsOf: #"","reason":"#.utf8)
        JSONValue.write(reason, to: &body)
        // Segment's clients read the reason from this member.
        body.append(contentsOf: #","message":"#.utf8)
        JSONValue.write(reason, to: &body)
        if let requestID {
            body.append(contentsOf: #","request_id":""#.utf8)
            body.append(contentsOf: requestID.utf8)
            body.append(UInt8(ascii: "\""))
        }
        body.append(UInt8(ascii: "}"))
        return body
    }
}
