internal import CHTTPServer
internal import CMicroHTTPD
internal import CountersignCore
internal import Foundation

/// One request on its way in and its answer on its way out. Belongs to the server thread of its connection.
final class Exchange {
    enum Phase {
        /// The request line is here, the header fields are not.
        case header
        /// The body arrives.
        case body
        /// The request waits, mostly for the disk.
        case waiting
        /// It did wait, and has its answer.
        case answered
    }

    let connection: OpaquePointer
    let watched: WatchedConnection?
    var phase = Phase.header
    var request: HTTPRequest?
    var poll: (() -> HTTPResponse?)?
    /// True when its answer comes piece by piece.
    var isStreaming = false
    /// The server's pass that brought the last piece of the body.
    var lastPiece = 0
    /// True when the observer has heard of it.
    var isObserved = false

    private let began = DispatchTime.now()

    /// The target as sent, up to `?`, and what follows it.
    private let path: String
    private let query: String?
    private var isCompressed = false
    private var isTooLarge = false

    init(connection: OpaquePointer, uri: UnsafePointer<CChar>, watched: WatchedConnection?) {
        self.connection = connection
        self.watched = watched
        let target = bytes(uri, strlen(uri))
        let end = target.firstIndex(of: UInt8(ascii: "?"))
        path = String(decoding: target[..<(end ?? target.endIndex)], as: UTF8.self)
        query = end.map { String(decoding: target[($0 + 1)...], as: UTF8.self) }
    }

    /// Reads the header fields.
    ///
    /// - Returns: The refusal of a request whose body is not worth reading, or nil.
    func readHeader(
        method rawMethod: UnsafePointer<CChar>, limits: GatewayLimits, trustedProxies: [AddressRange]
    ) -> HTTPResponse? {
        let method = String(cString: rawMethod)
        var fields: [HTTPField] = []
        fields.reserveCapacity(16)
        withUnsafeMutablePointer(to: &fields) { pointer in
            _ = MHD_get_connection_values_n(connection, MHD_ValueKind.HEADER_KIND, collectField, pointer)
        }
        let request = HTTPRequest(
            method: method, path: path, query: query, fields: fields, clientAddress: watched?.address ?? "",
            receivedMilliseconds: Int64(Date().timeIntervalSince1970 * 1000))
        self.request = request
        if let fault = Framing.fault(method: method, fields: fields, limits: limits) { return fault }
        if Framing.libraryIsLenient,
            !Framing.isWhole(fields, from: rawMethod, count: countersign_mhd_header_bytes(connection))
        {
            return Framing.swallowed
        }
        if !trustedProxies.isEmpty {
            request.clientAddress = ClientAddress.resolve(
                peer: request.clientAddress, forwarded: request.headers("x-forwarded-for"),
                proxies: trustedProxies)
        }
        switch request.header("content-encoding")?.lowercased() {
        case nil, "", "identity": break
        case "gzip", "x-gzip": isCompressed = true
        default:
            return .failure(
                415, code: "unsupported_encoding",
                reason: "send the body as it is, or with Content-Encoding: gzip",
                requestID: request.id
            ).with("Accept-Encoding", "gzip")
        }
        if let length = request.header("content-length") {
            guard let bytes = Int(length), bytes <= limits.bodyBytes else { return tooLarge(limits) }
            request.body.reserveCapacity(bytes)
        }
        return nil
    }

    /// Takes a piece of the body.
    ///
    /// - Returns: False when the sender goes on long after the limit, so that the connection is closed.
    func append(_ bytes: UnsafeRawBufferPointer, limits: GatewayLimits) -> Bool {
        guard let request else { return false }
        if isTooLarge || request.body.count + bytes.count > limits.bodyBytes {
            // The library takes an answer only after the body: read on, keep nothing.
            isTooLarge = true
            discarded += bytes.count
            request.body = []
            return discarded <= 4 * limits.bodyBytes
        }
        request.body.append(contentsOf: bytes)
        return true
    }

    /// Decompresses the body.
    ///
    /// - Returns: The refusal of a body that is too large or damaged, or nil.
    func finishBody(limits: GatewayLimits) -> HTTPResponse? {
        guard let request else { return nil }
        if isTooLarge { return tooLarge(limits) }
        guard isCompressed else { return nil }
        do throws(Gunzip.Failure) {
            request.body = try Gunzip.decompress(request.body, limits: limits)
            return nil
        } catch {
            switch error {
            case .tooLarge: return tooLarge(limits)
            case .damaged:
                return .failure(
                    400, code: "invalid_encoding", reason: "the body is not one complete gzip member",
                    requestID: request.id)
            }
        }
    }

    /// What the observer hears: nil stands for an exchange without an answer.
    func record(_ response: HTTPResponse?, trace: TraceParent?) -> RequestRecord {
        let now = DispatchTime.now()
        return RequestRecord(
            receivedMilliseconds: request?.receivedMilliseconds
                ?? Int64(Date().timeIntervalSince1970 * 1000),
            id: request?.id ?? "", trace: trace, method: request?.method ?? "",
            path: path, clientAddress: request?.clientAddress ?? "",
            trail: request?.trail ?? RequestTrail(), status: response?.status, code: response?.code,
            bytesIn: request?.body.count ?? 0, bytesOut: response?.body.count ?? 0,
            seconds: Double(now.uptimeNanoseconds - began.uptimeNanoseconds) / 1e9)
    }

    private var discarded = 0

    private func tooLarge(_ limits: GatewayLimits) -> HTTPResponse {
        .failure(
            413, code: "body_too_large",
            reason:
                "a body may have \(limits.bodyBytes) bytes, decompressed too: send fewer events at a time",
            requestID: request?.id)
    }
}

private let collectField: MHD_KeyValueIteratorN = { context, _, name, nameSize, value, valueSize in
    guard let context, let name else { return .YES }
    let field = HTTPField(
        nameBytes: bytes(name, nameSize),
        valueBytes: value.map { bytes($0, valueSize) } ?? .init(start: nil, count: 0))
    context.assumingMemoryBound(to: [HTTPField].self).pointee.append(field)
    return .YES
}

private func bytes(_ pointer: UnsafePointer<CChar>, _ count: Int) -> UnsafeBufferPointer<UInt8> {
    UnsafeRawBufferPointer(start: pointer, count: count).assumingMemoryBound(to: UInt8.self)
}
