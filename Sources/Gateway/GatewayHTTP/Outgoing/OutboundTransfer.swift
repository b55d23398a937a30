internal import CCurl
internal import CountersignCore
internal import CountersignCurl
internal import GatewayModel

/// A request in progress. Used by one thread at a time.
final class OutboundTransfer {
    /// The maximum size of all header fields together, including the fields of interim responses.
    private static let maximumHeaderBytes = 64 << 10

    let curl: CurlHandle
    private let request: OutboundRequest
    private var received: [UInt8] = []
    private var headerBytes = 0
    private var isTruncated = false
    /// Why the last address was rejected; nil if it was allowed. libcurl may try several addresses at the same time.
    private var rejection: String?

    init(_ request: OutboundRequest) throws(OutboundRequest.Failure) {
        guard let curl = CurlHandle() else {
            throw OutboundRequest.Failure(.connection, reason: "libcurl did not start")
        }
        self.curl = curl
        self.request = request
        curl.reset(
            url: request.url, schemes: request.schemes, timeoutMilliseconds: request.timeoutMilliseconds,
            certificateAuthorityFile: request.certificateAuthorityFile)
        curl.set(CURLOPT_PROXY, "")
        // The address is checked when a connection opens, so connections are not reused.
        curl.set(CURLOPT_FORBID_REUSE, 1)
        curl.set(CURLOPT_FRESH_CONNECT, 1)
        curl.set(
            CURLOPT_CONNECTTIMEOUT_MS, min(OutboundRequest.connectTimeout, request.timeoutMilliseconds))
        // Without this option, libcurl waits for an unresponsive name server even after the time limit.
        countersign_curl_quick_exit(curl.handle)
        curl.prepare(
            headers: request.headers.map { "\($0.name): \($0.value)" } + ["User-Agent: Countersign"],
            body: request.body, isCancelled: request.isCancelled,
            mayConnect: { [unowned self] address, length in
                rejection =
                    NetworkAddress(address, length: length).map { target in
                        PrivateAddressGuard.rejection(
                            of: target, port: NetworkAddress.port(address, length: length),
                            allowsPrivateAddresses: request.allowsPrivateAddresses)
                    } ?? "its address is neither IPv4 nor IPv6"
                return rejection == nil
            },
            onHeader: { [unowned self] field in
                headerBytes += field.count
                return headerBytes <= Self.maximumHeaderBytes
            },
            onBody: { [unowned self] chunk in
                let room = request.maximumBytes - received.count
                received.append(contentsOf: chunk.prefix(room))
                isTruncated = chunk.count > room
                return !isTruncated
            })
    }

    func answer(_ code: CURLcode) throws(OutboundRequest.Failure) -> OutboundRequest.Answer {
        let hasLongHeader = headerBytes > Self.maximumHeaderBytes
        if hasLongHeader || isTruncated && !request.cutsLongAnswers {
            let (part, limit) =
                hasLongHeader ? ("header", Self.maximumHeaderBytes) : ("answer", request.maximumBytes)
            throw OutboundRequest.Failure(.longAnswer, reason: "its \(part) is longer than \(limit) bytes")
        }
        // Another address may have been allowed, so that the request failed for another reason.
        if code == CURLE_COULDNT_CONNECT, let rejection {
            throw OutboundRequest.Failure(.forbiddenAddress, reason: rejection)
        }
        guard code == CURLE_OK || isTruncated else { throw OutboundRequest.Failure(code) }
        let seconds = curl.retryAfterSeconds
        return OutboundRequest.Answer(
            status: curl.status, body: received, retryAfterSeconds: seconds > 0 ? seconds : nil)
    }
}

extension OutboundRequest {
    package func perform() throws(Failure) -> Answer {
        let transfer = try OutboundTransfer(self)
        return try transfer.answer(transfer.curl.perform())
    }
}
