import CountersignCore
import Foundation

/// A server on a real socket that sends exactly the bytes given by a test.
package final class RawServer: Sendable {
    package let port: UInt16
    private let socket: Int32
    private let heads = Lock([String]())
    private let connections = Lock(0)

    /// The heads of all requests.
    package var requests: [String] { heads.withLock { $0 } }
    package var connectionCount: Int { connections.withLock { $0 } }

    /// `answer` returns the response to a request's head; nil closes the connection, "" leaves it open.
    package convenience init(answer: @escaping @Sendable (String) -> String?) throws {
        try self.init(status: nil) { head in answer(head).map { Array($0.utf8) } }
    }

    /// Like the other initializer, but `answer` returns bytes. The status line precedes them if `status` is not nil.
    package init(status: String?, answer: @escaping @Sendable (String) -> [UInt8]?) throws {
        let (made, port) = try Self.listen()
        (socket, self.port) = (made, port)
        Thread { [heads, connections] in
            while true {
                let client = accept(made, nil, nil)
                guard client >= 0 else { break }
                connections.withLock { $0 += 1 }
                Thread { Self.serve(client, status: status, heads: heads, answer: answer) }.start()
            }
            close(made)
        }.start()
    }

    /// A listening socket on a free local port.
    package static func listen() throws -> (socket: Int32, port: UInt16) {
        #if canImport(Glibc)
            let stream = Int32(SOCK_STREAM.rawValue)
        #else
            let stream = SOCK_STREAM
        #endif
        let made = Foundation.socket(AF_INET, stream, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(made, generic, length) == 0 && Foundation.listen(made, 128) == 0
                    && getsockname(made, generic, &length) == 0
            }
        }
        guard isListening else { throw POSIXError(.EADDRNOTAVAIL) }
        return (made, UInt16(bigEndian: address.sin_port))
    }

    /// Stops accepting connections. The accepting thread closes the socket.
    package func stop() { shutdown(socket, Int32(SHUT_RDWR)) }

    private static func serve(
        _ client: Int32, status: String?, heads: Lock<[String]>, answer: (String) -> [UInt8]?
    ) {
        defer { close(client) }
        var buffer: [UInt8] = []
        while let (head, rest) = readHead(client, &buffer) {
            heads.withLock { $0.append(head) }
            let length =
                head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
                .flatMap { Int($0.split(separator: ":")[1].trimmingCharacters(in: .whitespaces)) } ?? 0
            buffer = rest
            while buffer.count < length {
                guard let more = readSome(client) else { return }
                buffer += more
            }
            buffer.removeFirst(length)
            guard let rest = answer(head) else { return }
            let bytes = status.map { Array("HTTP/1.1 \($0)\r\n".utf8) + rest } ?? rest
            _ = bytes.withUnsafeBytes { send(client, $0.baseAddress, $0.count, noSignal) }
        }
    }

    #if canImport(Glibc)
        private static let noSignal = Int32(MSG_NOSIGNAL)
    #else
        private static let noSignal: Int32 = 0
    #endif

    private static func readHead(_ client: Int32, _ buffer: inout [UInt8]) -> (String, [UInt8])? {
        while true {
            if let end = Data(buffer).range(of: Data("\r\n\r\n".utf8)) {
                return (
                    String(decoding: buffer[..<end.lowerBound], as: UTF8.self),
                    Array(buffer[end.upperBound...])
                )
            }
            guard let more = readSome(client) else { return nil }
            buffer += more
        }
    }

    private static func readSome(_ client: Int32) -> [UInt8]? {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = recv(client, &chunk, chunk.count, 0)
        return count > 0 ? Array(chunk[..<count]) : nil
    }
}
