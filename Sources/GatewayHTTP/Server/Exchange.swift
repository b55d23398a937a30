internal import CHTTPServer
internal import CMicroHTTPD
internal import Foundation
internal import GatewayModel

/// One request on its way in and its answer on its way out. Belongs to the loop of its connection.
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
    /// True when what it waits for has ended, so that it is worth asking.
    var isReady = false
    /// True when its answer comes piece by piece.
    var isStreaming = false
    /// What its body or answer takes of the memory of all.
    let held: HeldMemory
    /// True while its memory may be taken for others.
    var isListed = false
    /// The loop's pass that brought the last piece of the body.
    var lastPiece = 0
    /// True when the observer has heard of it.
    var isObserved = false

    private let began = DispatchTime.now()

    /// The target as sent, for as long as the library has not decoded it in place.
    private let target: RequestTarget
    /// The chunks of a chunked body that have come, and their bytes; nil for a body with a length.
    private var chunks: (count: Int, bytes: Int)?
    /// Why the body is not kept.
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

    /// Reads the header fields. Returns the refusal of a request whose body is not worth reading, or nil.
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
            limits: service.limits)
        {
            return fault
        }
        if request.headerBytes("transfer-encoding") != nil { chunks = (0, 0) }
        return service.judgeHeader(of: request)
    }

    /// Takes a piece of the body. Returns false when the sender goes on long after the limit, or sends chunks that cost
    /// more than they carry: the library takes no answer before the end of the body, so the connection is closed.
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
            // The library takes an answer only after the body: read on, keep nothing.
            discarded += bytes.count
            return discarded <= 4 * limits.bodyBytes
        }
        request.body.append(contentsOf: bytes)
        return true
    }

    /// Takes memory for more bytes; false when there is none.
    func hold(_ count: Int, makeRoom: () -> Bool) -> Bool {
        held.take(count) || !held.isEvicted && makeRoom() && held.take(count)
    }

    /// Remembers the size of the body, for when it is gone.
    func noteBody() {
        bodyBytes = request?.body.count ?? 0
    }

    /// Gives up what it holds.
    func letGo() {
        request?.body = []
        held.giveAll()
    }

    private func discard(_ reason: Discarding) {
        discarding = reason
        letGo()
    }

    /// Looks at the trailer fields, and takes the memory that a compressed body will need. Returns the refusal of a
    /// body that is too large or damaged, or nil.
    func finishBody(limits: GatewayLimits, makeRoom: () -> Bool) -> HTTPResponse? {
        guard let request else { return nil }
        switch discarding {
        case .tooLarge: return .tooLarge(request, limits)
        case .noRoom: return noRoom
        case nil: break
        }
        // Only chunks are followed by trailer fields.
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

    /// The most that the body has, decompressed.
    var largestBody: Int { max(request?.body.count ?? 0, unpackedBytes) }

    /// What the observer hears: nil stands for an exchange without an answer.
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

    /// What a request gets for which there is no memory.
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
