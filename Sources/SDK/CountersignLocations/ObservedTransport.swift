internal import CountersignTransport

/// Calls an observer with the result of each exchange that was not cancelled, before the response is used.
struct ObservedTransport: HTTPTransport {
    let transport: any HTTPTransport
    let observe: @Sendable (Result<TransportResponse, HTTPTransportError>) -> Void

    func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
        do {
            let response = try await transport.send(request)
            observe(.success(response))
            return response
        } catch {
            if error.code != .cancelled { observe(.failure(error)) }
            throw error
        }
    }
}
