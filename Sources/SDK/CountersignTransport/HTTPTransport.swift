/// Sends one HTTP request and returns the answer: the SDK's only way to the network.
///
/// A transport does the call and nothing else. It does not retry, does not follow redirects (an answer of 301 to 308
/// comes back as it is, so that a credential never reaches another origin), keeps no cookies and caches nothing. The
/// SDK decides what an answer means.
///
/// `URLSession` is used on Apple platforms and libcurl on Linux. Pass your own to `CountersignClient` to go through an
/// app's network layer, and the one of the `CountersignTesting` product to test without a network.
public protocol HTTPTransport: Sendable {
    /// Sends `request` and reads the answer, up to `TransportRequest.maximumResponseBytes` of its body.
    ///
    /// Cancelling the task ends the exchange soon; whether the server has taken the request is then unknown.
    ///
    /// - Parameter request: What to send.
    /// - Returns: The response, with any status.
    ///
    /// - Throws: When there was no complete response. Each failure except `notPermitted` may be retried
    /// later.
    func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse
}

/// The transport that is used when an app passes none.
package func makeDefaultTransport() -> any HTTPTransport {
    #if os(Linux)
        CurlTransport()
    #else
        URLSessionTransport()
    #endif
}
