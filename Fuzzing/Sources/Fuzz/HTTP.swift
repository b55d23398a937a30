import Foundation

@testable import GatewayHTTP
@testable import GatewayModel

private let rules = HeadLimits(GatewayLimits())

/// Checks that a request head is parsed equally in one piece and in pieces. The first byte is the size of the pieces.
func fuzzHead(_ bytes: [UInt8]) {
    guard let size = bytes.first else { return }
    let bytes = Array(bytes.dropFirst())
    let (whole, parsed) = parseHead(bytes, pieces: bytes.count + 1)
    var parser = parsed
    let (other, _) = parseHead(bytes, pieces: Int(size) + 1)
    // Both reject, possibly for different reasons, because a line may be malformed in two ways.
    if case .rejected = whole, case .rejected = other { return }
    precondition(whole == other, "\(whole) and \(other)")
    guard whole == .complete else { return }
    precondition(parser.count <= bytes.count)
    precondition(bytes[..<parser.count].suffix(4).elementsEqual([13, 10, 13, 10]))
    var fields: [HTTPField] = []
    bytes.withUnsafeBytes { bytes in
        _ = parser.takeFields(of: bytes, to: &fields)
        for field in fields {
            precondition(!field.nameBytes.isEmpty && field.nameBytes.allSatisfy { HTTPSyntax.isToken($0) })
            precondition(!field.valueBytes.contains { HTTPSyntax.isControl($0) })
        }
        let hosts = fields.filter { $0.isNamed("host") }.count
        let lengths = fields.filter { $0.isNamed("content-length") }.count
        let codings = fields.filter { $0.isNamed("transfer-encoding") }.count
        precondition(hosts == 1 && lengths + codings <= 1)
        precondition((parser.framing == .chunked) == (codings == 1))
    }
}

private func parseHead(_ bytes: [UInt8], pieces: Int) -> (HeadParser.Progress, HeadParser) {
    var parser = HeadParser(rules)
    return bytes.withUnsafeBytes { bytes in
        var end = 0
        while true {
            end = min(bytes.count, end + pieces)
            let progress = parser.parse(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
            if progress != .incomplete || end == bytes.count { return (progress, parser) }
        }
    }
}

/// Checks that a chunked body is parsed equally in one piece and in pieces.
func fuzzChunks(_ bytes: [UInt8]) {
    guard let size = bytes.first else { return }
    let bytes = Array(bytes.dropFirst())
    let whole = parseChunks(bytes, pieces: bytes.count + 1)
    let other = parseChunks(bytes, pieces: Int(size) + 1)
    precondition(whole.end == other.end && whole.used == other.used, "\(whole) and \(other)")
    precondition(whole.content == other.content && whole.content.count <= bytes.count)
}

private func parseChunks(
    _ bytes: [UInt8], pieces: Int
) -> (content: [UInt8], end: ChunkedBodyParser.Step, used: Int) {
    var parser = ChunkedBodyParser(rules)
    var content: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: pieces) {
        let piece = Array(bytes[start..<min(bytes.count, start + pieces)])
        var position = 0
        let step = piece.withUnsafeBytes { piece in
            while true {
                let step = parser.next(piece, from: &position)
                guard case .content(let range) = step else { return step }
                content += piece[range]
            }
        }
        if step != .incomplete { return (content, step, start + position) }
    }
    return (content, .incomplete, bytes.count)
}

/// The port of a server to which each input connects.
private let port: UInt16 = {
    do {
        var limits = GatewayLimits()
        limits.bodyBytes = 20_000
        let server = HTTPServer(limits: limits, observer: ObserverGroup(members: [])) { request in
            let answer = HTTPResponse.text(200, "\(request.body.count) \(request.fields.all.count)")
            guard request.path.utf8.count % 2 == 0 else { return .answer(answer) }
            return .waiting(
                {
                    let done = $0; DispatchQueue.global().async { done(()) }
                }, finish: { answer })
        }
        let port = try server.start(host: "127.0.0.1", port: 0)
        // Keeps the server until the process ends.
        _ = Unmanaged.passRetained(server)
        return port
    } catch {
        fatalError("\(error)")
    }
}()

/// Sends the input over a connection, in pieces whose size is the first byte. Each response must be complete, and no
/// response may follow `Connection: close`.
func fuzzConnection(_ bytes: [UInt8]) {
    guard let size = bytes.first else { return }
    let connection = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(connection) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let isConnected = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(connection, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
    precondition(isConnected, "no connection: \(errno)")
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    // Closes with a reset, because connections in TIME_WAIT would use up the ports.
    var reset = linger(l_onoff: 1, l_linger: 0)
    setsockopt(connection, SOL_SOCKET, SO_LINGER, &reset, socklen_t(MemoryLayout<linger>.size))
    let pieces = max(1, max(Int(size), bytes.count / 64))
    for start in stride(from: 1, to: bytes.count, by: pieces) {
        let piece = Array(bytes[start..<min(bytes.count, start + pieces)])
        guard send(connection, piece, piece.count, Int32(MSG_NOSIGNAL)) == piece.count else { break }
    }
    shutdown(connection, Int32(SHUT_WR))
    var output: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16_384)
    while true {
        let count = recv(connection, &chunk, chunk.count, 0)
        // The fuzzer's timer interrupts system calls.
        if count < 0, errno == EINTR { continue }
        precondition(count >= 0 || errno == ECONNRESET, "the connection stays open")
        guard count > 0 else { break }
        output += chunk[..<count]
    }
    checkAnswers(output[...])
}

private func checkAnswers(_ output: ArraySlice<UInt8>) {
    var rest = output
    var isClosed = false
    while !rest.isEmpty {
        precondition(!isClosed, "a response after Connection: close")
        precondition(rest.starts(with: "HTTP/1.1 ".utf8))
        guard let end = rest.firstRange(of: Array("\r\n\r\n".utf8)) else { return }
        let head = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
        rest = rest[end.upperBound...]
        let fields = head.split(separator: "\r\n").dropFirst()
        isClosed = fields.contains("Connection: close")
        let length = fields.first { $0.hasPrefix("Content-Length: ") }.flatMap { Int($0.dropFirst(16)) } ?? 0
        // The response may be to HEAD and have no body, which this client does not know.
        if rest.starts(with: "HTTP/1.1 ".utf8) { continue }
        rest = rest.dropFirst(length)
    }
}
