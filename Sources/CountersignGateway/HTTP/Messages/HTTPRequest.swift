internal import CountersignCore

/// One request, read completely. Its header fields live in the server's memory until the answer is sent.
package final class HTTPRequest {
    /// The method as sent, such as `POST`.
    package let method: String
    /// The path as sent, not decoded, without the query.
    package let path: String
    /// What followed `?`, not decoded; nil when there was none.
    package let query: String?
    /// The client's address as text, as far as it can be believed; empty when unknown.
    package internal(set) var clientAddress: String
    /// True when a proxy passed the request on, so that its peer's address says nothing about whose it is.
    package internal(set) var isForwarded = false
    /// Milliseconds since 1970 when the header was complete.
    package let receivedMilliseconds: Int64
    /// What the answer and the log call this request.
    package let id: String
    /// The body, decompressed.
    package internal(set) var body: [UInt8] = []
    /// What is learnt of it on the way.
    package var trail = RequestTrail()
    /// Reads the body as fields of a form, for as long as the request is in the hands of its connection; nil where it is not.
    var readMultipartForm: (() -> MultipartForm?)?

    /// True when its method changes nothing (RFC 9110, section 9.2.1).
    var isSafe: Bool { ["GET", "HEAD", "OPTIONS"].contains(method) }

    private let fields: [HTTPField]
    /// What `fields` point into when they are not the server's.
    private let ownHeader: UnsafeMutableBufferPointer<UInt8>?

    package init(
        method: String, path: String, query: String?, fields: [HTTPField], clientAddress: String,
        receivedMilliseconds: Int64, body: [UInt8] = []
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.fields = fields
        self.clientAddress = clientAddress
        self.receivedMilliseconds = receivedMilliseconds
        self.body = body
        ownHeader = nil
        var given: String?
        for field in fields where field.isNamed("x-request-id") {
            given = Self.isHarmless(field.valueBytes) ? field.value : nil
            break
        }
        self.id = given ?? UUIDv7.make()
    }

    /// The same request with header fields of its own, to be handled on another thread: those of this one go with its
    /// connection, which the client may close meanwhile.
    func detached() -> HTTPRequest { HTTPRequest(detaching: self) }

    private init(detaching request: HTTPRequest) {
        method = request.method
        path = request.path
        query = request.query
        clientAddress = request.clientAddress
        receivedMilliseconds = request.receivedMilliseconds
        id = request.id
        body = request.body
        trail = request.trail
        isForwarded = request.isForwarded
        let header = UnsafeMutableBufferPointer<UInt8>.allocate(
            capacity: request.fields.reduce(0) { $0 + $1.nameBytes.count + $1.valueBytes.count })
        var end = 0
        func copy(_ bytes: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
            let place = UnsafeMutableBufferPointer(rebasing: header[end..<end + bytes.count])
            _ = place.update(fromContentsOf: bytes)
            end += bytes.count
            return UnsafeBufferPointer(place)
        }
        fields = request.fields.map {
            HTTPField(nameBytes: copy($0.nameBytes), valueBytes: copy($0.valueBytes))
        }
        ownHeader = header
    }

    deinit {
        ownHeader?.deallocate()
    }

    /// The bytes of the first field with this lower-case name, or nil; valid until the answer is sent.
    func headerBytes(_ name: StaticString) -> UnsafeBufferPointer<UInt8>? {
        for field in fields where field.isNamed(name) { return field.valueBytes }
        return nil
    }

    /// True when a proxy has left its mark.
    var namesProxies: Bool {
        headerBytes("x-forwarded-for") != nil || headerBytes("forwarded") != nil
            || headerBytes("via") != nil
    }

    /// The value of the first field with this lower-case name, or nil.
    package func header(_ name: StaticString) -> String? {
        headerBytes(name).map { HTTPField.text($0) }
    }

    /// The values of all fields with this lower-case name, in their order.
    package func headers(_ name: StaticString) -> [String] {
        fields.filter { $0.isNamed(name) }.map(\.value)
    }

    /// An id that may go back out in a header and into a log: 1 to 128 letters, digits, `-`, `_`, `.`.
    private static func isHarmless(_ id: UnsafeBufferPointer<UInt8>) -> Bool {
        (1...128).contains(id.count)
            && id.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                    UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }
}

/// One header field, as received. Borrowed from the server: valid until the answer is sent.
package struct HTTPField {
    let nameBytes: UnsafeBufferPointer<UInt8>
    let valueBytes: UnsafeBufferPointer<UInt8>

    /// The value; bytes that are not ASCII, which no field that is looked at has, are replaced. So nobody can send text
    /// that takes long to compare.
    package var value: String { Self.text(valueBytes) }

    static func text(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
        return String(decoding: bytes.map { $0 < 0x80 ? UInt16($0) : 0xFFFD }, as: UTF16.self)
    }

    /// True when the field has this name, given in lower case; field names ignore ASCII case (RFC 9110, section 5.1).
    func isNamed(_ name: StaticString) -> Bool {
        guard nameBytes.count == name.utf8CodeUnitCount else { return false }
        for index in 0..<nameBytes.count {
            let byte = nameBytes[index]
            let lower = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
            if lower != name.utf8Start[index] { return false }
        }
        return true
    }
}
