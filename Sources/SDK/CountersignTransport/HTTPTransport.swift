/// Sends one HTTP request and returns the response. The SDK has no other access to the network.
///
/// A transport does not retry, store cookies or cache. Only after 415, the default sends a compressed body again
/// uncompressed. Redirects (301 to 308) are returned, not followed, so that credentials never reach another origin.
///
/// The default is `URLSession` on Apple platforms and libcurl on Linux. Pass your own transport to
/// `CountersignClient` to use an app's network layer, or the transport of `CountersignTesting` to test without a
/// network.
public protocol HTTPTransport: Sendable {
    /// Sends `request` and reads the response, with up to `TransportRequest.maximumResponseBytes` of its body.
    ///
    /// Cancelling the task ends the exchange soon. It is then unknown whether the server has accepted the request.
    ///
    /// - Parameter request: The request.
    /// - Returns: The response, with any status.
    /// - Throws: When there was no complete response. Each failure except `notPermitted` may be retried later.
    func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse
}

package func makeDefaultTransport() -> any HTTPTransport {
    #if os(Linux)
        CurlTransport()
    #else
        URLSessionTransport()
    #endif
}
