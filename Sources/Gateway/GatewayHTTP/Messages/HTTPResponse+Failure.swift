internal import GatewayModel

extension HTTPResponse {
    package static func failure(_ status: Int, code: String, reason: String, requestID: String?)
        -> HTTPResponse
    {
        var response = HTTPResponse.json(
            status, ErrorBody.bytes(code: code, reason: reason, requestID: requestID))
        response.code = code
        return response
    }
}
