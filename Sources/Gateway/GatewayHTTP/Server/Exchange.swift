internal import CHTTPServer
internal import CMicroHTTPD
internal import Foundation
internal import GatewayModel

/// One request and its response. Belongs to the loop of its connection.
final class Exchange {
    enum Phase {
        /// The request line has arrived, the header fields have not.
        case header
        /// The body arrives.
        case body
        /// The request waits, usually for a disk write.
        case waiting
        /// The request has waited and has its response.
        case answered
    }

    let connection: OpaquePointer
    let watched: WatchedConnection?
    var phase = Phase.header
    var request: HTTPRequest?
    var poll: (() -> HTTPResponse?)?
    /// Whether the awaited work has ended, so that `poll` can return the response.
    var isReady = false
    /// Whether the response is sent as a stream.
    var isStreaming = false
    /// The memory reserved for the body or the response.
    let held: HeldMemory
    /// Whether the memory may be reclaimed for other requests.
    var isListed = false
    /// The pass of the loop in which the last piece of the body arrived.
    var lastPiece = 0
    /// Whether the request was reported to the observer.
    var isObserved = false

    private let began = DispatchTime.now()

    /// The target as sent. Its bytes are only valid until the library decodes them in place.
    private let target: RequestTarget
    /// The number of received chunks and their bytes; nil for a body with a length.
    private var chunks: (count: Int, bytes: Int)?
    private var discarding: Discarding?

    private enum Discarding {
        case tooLarge
        case noRoom
    }

    init(
        connection: OpaquePointer, uri: UnsafePointer<CChar>, watched: WatchedConnection?, memory: BodyMemory
    ) {
        self.connection = connection
        self.watched = watched
        held = HeldMemory(memory)
        target = RequestTarget(bytes(uri, strlen(uri)))
    }

    /// Reads the header fields. Returns the response if the request is rejected before its body is read;
    /// otherwise nil.
    func readHeader(
        method rawMethod: UnsafePointer<CChar>, version: UnsafePointer<CChar>, service: RequestService
    ) -> HTTPResponse? {
        let method = String(cString: rawMethod)
        var fields: [HTTPField] = []
        fields.reserveCapacity(16)
        withUnsafeMutablePointer(to: &fields) { pointer in
            _ = MHD_get_connection_values_n(connection, MHD_ValueKind.HEADER_KIND, collectField, pointer)
        }
        let request = HTTPRequest(
            method: method, path: target.path, query: target.query, fields: HeaderBlock(borrowing: fields),
            clientAddress: watched?.address ?? "",
            receivedMilliseconds: service.nowMilliseconds)
        request.peer = watched
        self.request = request
        if Framing.libraryIsLenient,
            !Framing.isWhole(
                fields, after: (rawMethod, target.start, target.count, version),
                count: countersign_mhd_header_bytes(connection))
        {
            return Framing.swallowed
        }
        if let fault = Framing.fault(
            method: method, target: target, version: String(cString: version), fields: fields,
            limits: service.limits, singleFields: service.singleFields)
        {
            return fault
        }
        if request.headerBytes("transfer-encoding") != nil { chunks = (0, 0) }
        return service.judgeHeader(of: request)
    }

    /// Appends a piece of the body. Returns false to close the connection: when the client sends far more
    /// than the limit, or chunks with hardly any content. The library accepts no response before the end of
    /// the body.
    func append(_ bytes: UnsafeRawBufferPointer, limits: GatewayLimits, makeRoom: () -> Bool) -> Bool {
        guard let request else { return false }
        watched?.notePiece()
        if let (count, sum) = chunks {
            chunks = (count + 1, sum + bytes.count)
            if Framing.isCrumbled(chunks: count + 1, bytes: sum + bytes.count) { return false }
        }
        if discarding == nil {
            if request.body.count + bytes.count > limits.bodyBytes {
                discard(.tooLarge)
            } else if !hold(bytes.count, makeRoom: makeRoom) {
                discard(.noRoom)
            }
        }
        if discarding != nil {
            // The library accepts a response only after the body, so read on and discard.
            discarded += bytes.count
            return discarded <= 4 * limits.bodyBytes
        }
        request.body.append(contentsOf: bytes)
        return true
    }

    /// Reserves memory for more bytes. Returns false if there is not enough.
    func hold(_ count: Int, makeRoom: () -> Bool) -> Bool {
        held.take(count) || !held.isEvicted && makeRoom() && held.take(count)
    }

    /// Stores the size of the body before the body is freed.
    func noteBody() {
        bodyBytes = request?.body.count ?? 0
    }

    func letGo() {
        request?.body = []
        held.giveAll()
    }

    private func discard(_ reason: Discarding) {
        discarding = reason
        letGo()
    }

    /// Checks the trailer fields and reserves the memory for decompressing the body. Returns the response if
    /// the body is too large or damaged; otherwise nil.
    func finishBody(limits: GatewayLimits, makeRoom: () -> Bool) -> HTTPResponse? {
        guard let request else { return nil }
        switch discarding {
        case .tooLarge: return .tooLarge(request, limits)
        case .noRoom: return noRoom
        case nil: break
        }
        // Only chunked bodies have trailer fields.
        if chunks != nil {
            var trailers: [HTTPField] = []
            withUnsafeMutablePointer(to: &trailers) { pointer in
                _ = MHD_get_connection_values_n(connection, MHD_ValueKind.FOOTER_KIND, collectField, pointer)
            }
            if let fault = Framing.fault(inTrailers: trailers) { return fault }
        }
        if request.headerBytes("content-type")?.first.map({ $0 | 0x20 }) == UInt8(ascii: "m") {
            request.readMultipartForm = { [connection, unowned request] in
                MultipartForm(request.body, connection: connection)
            }
        }
        guard request.isCompressed else { return nil }
        do throws(Gunzip.Failure) {
            unpackedBytes = try Gunzip.size(of: request.body, limits: limits)
        } catch {
            return error.response(request, limits)
        }
        return hold(unpackedBytes, makeRoom: makeRoom) ? nil : noRoom
    }

    /// The maximum size of the decompressed body.
    var largestBody: Int { max(request?.body.count ?? 0, unpackedBytes) }

    /// The record for the observer; `response` is nil for an exchange without a response.
    func record(
        _ response: HTTPResponse?, trace: TraceParent?, at nowMilliseconds: @autoclosure () -> Int64
    ) -> RequestRecord {
        RequestRecord(
            request, path: target.path, response: response, trace: trace,
            bytesIn: max(bodyBytes, request?.body.count ?? 0), began: began,
            nowMilliseconds: nowMilliseconds())
    }

    private var discarded = 0
    private var bodyBytes = 0
    private var unpackedBytes = 0

    /// The response to a request for which there is no memory.
    var noRoom: HTTPResponse {
        .failure(
            503, code: "overloaded",
            reason: "the gateway is receiving more data than it can hold; nothing was stored, send it again",
            requestID: request?.id
        ).with("Retry-After", "1")
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
