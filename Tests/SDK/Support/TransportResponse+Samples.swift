package import CountersignCore
package import CountersignTransport

extension TransportResponse {
    package static func json(_ status: Int, _ body: String, headers: [(name: String, value: String)] = [])
        -> TransportResponse
    {
        TransportResponse(status: status, headers: headers, body: Array(body.utf8))
    }

    package static func tokenProblem(_ code: AuthErrorCode, skew: Int? = nil) -> TransportResponse {
        let skew = skew.map { #","clock_skew_seconds":\#($0)"# } ?? ""
        return .json(
            401,
            #"{"success":false,"auth_error":{"error_code":\#(code.rawValue),"reason":"\#(code.reason)"\#(skew)}}"#
        )
    }
}

/// The number of nested levels in `json`. Its texts must not contain brackets.
package func depth(of json: [UInt8]) -> Int {
    var (open, deepest) = (0, 0)
    for byte in json {
        if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") { open += 1 }
        if byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") { open -= 1 }
        deepest = max(deepest, open)
    }
    return deepest
}
