package import GatewayHTTP
internal import GatewayModel

extension StoreFailure {
    /// 503: nothing was stored, and the same request may succeed later.
    package func response(_ request: HTTPRequest) -> HTTPResponse {
        request.failure(503, code, summary + "; nothing was stored, send it again")
            .with("Retry-After", String(retryAfterSeconds))
    }
}
