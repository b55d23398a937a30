package import GatewayHTTP
internal import GatewayModel

extension StoreFailure {
    /// 503: nothing was stored, and the same request may succeed later.
    package func response(_ request: HTTPRequest) -> HTTPResponse {
        HTTPResponse.failure(
            503, code: code, reason: summary + "; nothing was stored, send it again", requestID: request.id
        ).with("Retry-After", String(retryAfterSeconds))
    }
}
