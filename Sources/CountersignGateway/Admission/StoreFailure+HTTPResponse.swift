extension StoreFailure {
    /// The word in the answer.
    var code: String {
        switch reason {
        case .full: "storage_full"
        case .overloaded: "overloaded"
        case .failed: "storage_unavailable"
        case .closed: "draining"
        }
    }

    /// What is the matter, for the client.
    var summary: String {
        switch reason {
        case .full: "the gateway's disk is full"
        case .overloaded: "more waits for the gateway's disk than may"
        case .failed: "the gateway cannot write its storage"
        case .closed: "the gateway is stopping"
        }
    }

    /// When another try makes sense.
    var retryAfterSeconds: Int {
        switch reason {
        case .full: 30
        case .failed: 5
        case .overloaded, .closed: 1
        }
    }

    /// 503: nothing was stored, and the same request may succeed later.
    func response(_ request: HTTPRequest) -> HTTPResponse {
        HTTPResponse.failure(
            503, code: code, reason: summary + "; nothing was stored, send it again", requestID: request.id
        ).with("Retry-After", String(retryAfterSeconds))
    }
}
