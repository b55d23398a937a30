import CountersignCore
import Foundation

/// A web server of one answer: it takes one request on a free port of this machine and keeps it.
final class WebhookReceiver: Sendable {
    struct Request {
        var head: String
        var headers: [String: String]
        var body: [UInt8]
    }

    let port: UInt16
    private let descriptor: Int32
    private let status: Int
    private let received = Lock<Request?>(nil)
    private let done = DispatchSemaphore(value: 0)

    init(status: Int) throws {
        self.status = status
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let bound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 1) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard bound else { throw POSIXError(.EADDRINUSE) }
        port = UInt16(bigEndian: address.sin_port)
        let thread = Thread { [self] in serve() }
        thread.start()
    }

    /// The request; nil when none came before the listener was closed, or within half a minute.
    func request() -> Request? {
        guard done.wait(timeout: .now() + 30) == .success else { return nil }
        return received.withLock { $0 }
    }

    func close() {
        shutdown(descriptor, Int32(SHUT_RDWR))
        Foundation.close(descriptor)
    }

    private func serve() {
        defer { done.signal() }
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { return }
        defer { Foundation.close(connection) }
        var bytes: [UInt8] = []
        while true {
            if let request = parse(bytes) {
                received.withLock { $0 = request }
                break
            }
            var chunk = [UInt8](repeating: 0, count: 16_384)
            let count = recv(connection, &chunk, chunk.count, 0)
            guard count > 0 else { return }
            bytes += chunk[..<count]
        }
        let answer = Array(
            "HTTP/1.1 \(status) X\r\nLocation: /other\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
                .utf8)
        _ = answer.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    private func parse(_ bytes: [UInt8]) -> Request? {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else { return nil }
        let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = line[line.index(after: colon)...]
                .trimmingCharacters(in: .whitespaces)
        }
        let body = Array(text[end.upperBound...].utf8)
        guard body.count >= Int(headers["content-length"] ?? "0") ?? 0 else { return nil }
        return Request(head: lines[0], headers: headers, body: body)
    }
}
