internal import GatewayModel

extension HTTPResponse {
    package static func failure(_ status: Int, _ code: String, _ reason: String, requestID: String?)
        -> HTTPResponse
    {
        var response = HTTPResponse.json(
            status, ErrorBody.bytes(code: code, reason: reason, requestID: requestID))
        response.code = code
        return response
    }
}

extension HTTPRequest {
    /// A response with an ``ErrorBody``.
    package func failure(_ status: Int, _ code: String, _ reason: String) -> HTTPResponse {
        .failure(status, code, reason, requestID: id)
    }
}
