internal import CountersignCore
internal import CountersignCrypto
internal import GatewayHTTP
internal import GatewayModel

struct IdempotencyEntry: Sendable {
    /// The ``AdminIdentity/uniqueName`` of the caller; empty for an entry of gateways with a shared database.
    var caller = ""
    let digest: [UInt8]
    let milliseconds: Int64
    /// Nil before the response, and permanently if a stop of the gateway or a storage error interrupted the request.
    var response: HTTPResponse?
}

/// The form in which gateways with a shared database store an entry.
extension IdempotencyEntry {
    init?(note: JSONValue) {
        guard case .array(let parts) = note, parts.count >= 2,
            let digest = String(jsonValue: parts[0]).flatMap({ Base64URL.decode($0) }),
            let milliseconds = Int64(jsonValue: parts[1])
        else { return nil }
        self.init(digest: digest, milliseconds: milliseconds, response: nil)
        guard parts.count == 5, let status = Int(jsonValue: parts[2]), case .array(let headers) = parts[3],
            let body = String(jsonValue: parts[4]).flatMap({ Base64URL.decode($0) })
        else { return }
        let fields = headers.compactMap { String(jsonValue: $0) }
        response = HTTPResponse(
            status: status,
            headers: stride(from: 0, to: fields.count - 1, by: 2).map { (fields[$0], fields[$0 + 1]) },
            body: body)
    }

    var note: JSONValue {
        var parts: [JSONValue] = [.string(Base64URL.encode(digest)), .integer(milliseconds)]
        if let response {
            let headers = response.headers.flatMap { [JSONValue.string($0.name), .string($0.value)] }
            parts += [
                .integer(Int64(response.status)), .array(headers), .string(Base64URL.encode(response.body)),
            ]
        }
        return .array(parts)
    }
}
