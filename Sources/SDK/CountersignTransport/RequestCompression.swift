internal import CountersignCore
internal import Foundation

/// Compresses the bodies of a transport's requests, except to servers that have rejected a compressed body.
final class RequestCompression: Sendable {
    /// Bodies up to this length are sent uncompressed.
    private static let worthwhileBytes = 1_024

    /// The servers that answered 415 (RFC 9110, section 15.5.16) to a compressed body.
    private let rejecting = Lock(BytewiseSet())

    /// Sends a compressible `request` compressed, and once more uncompressed if the server rejects the encoding.
    func send(
        _ request: TransportRequest,
        _ transmit: (TransportRequest) async throws(HTTPTransportError) -> TransportResponse
    ) async throws(HTTPTransportError) -> TransportResponse {
        let server = "\(request.url.scheme ?? "")://\(request.url.host ?? ""):\(request.url.port ?? 0)"
        guard request.isCompressible, request.body.count > Self.worthwhileBytes,
            !rejecting.withLock({ $0.contains(server) }), let packed = Gzip.compress(request.body)
        else { return try await transmit(request) }
        let response = try await transmit(request.setting("Content-Encoding", to: "gzip", body: packed))
        guard response.status == 415 else { return response }
        rejecting.withLock { _ = $0.insert(server) }
        return try await transmit(request)
    }
}
