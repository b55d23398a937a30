import CountersignCore
import Foundation
import TestSupport

/// A web server on a free local port with scripted behaviour, which records its requests.
package final class WebhookServer: Sendable {
    package struct Request: Sendable {
        /// The request line.
        package var head: String
        package var headers: [String: String]
        package var body: [UInt8]
    }

    /// The response to a request.
    package enum Behaviour: Sendable {
        case answer(Int, headers: [String: String] = [:], body: String = "ok")
        /// Sends nothing and leaves the connection open.
        case hang
        case close
        /// Starts a response that never ends.
        case endless
        /// Sends interim responses without end.
        case interim
    }

    package let port: UInt16
    private let descriptor: Int32
    private let behave: @Sendable (Request) -> Behaviour
    private let kept = Lock<[Request]>([])
    private let arrived = DispatchSemaphore(value: 0)

    package init(_ behave: @escaping @Sendable (Request) -> Behaviour) throws {
        self.behave = behave
        (descriptor, port) = try RawServer.listen()
        Thread.detachNewThread { [self] in
            while true {
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else {
                    // Closed only here. Otherwise `accept` could use a descriptor number that was reused.
                    Foundation.close(descriptor)
                    return
                }
                Thread.detachNewThread { [self] in serve(connection) }
            }
        }
    }

    package var url: String { "http://127.0.0.1:\(port)/in" }
    package var requests: [Request] { kept.withLock { $0 } }

    /// Waits up to 30 seconds for another request. Returns the first request; nil after a timeout.
    package func request() -> Request? { waitForRequest() ? requests.first : nil }

    /// Waits up to 30 seconds for another request. Returns false after a timeout.
    package func waitForRequest() -> Bool { arrived.wait(timeout: .now() + 30) == .success }

    package func close() {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    private func serve(_ connection: Int32) {
        defer { Foundation.close(connection) }
        guard let request = read(connection) else { return }
        kept.withLock { $0.append(request) }
        arrived.signal()
        switch behave(request) {
        case .answer(let status, let headers, let body):
            let fields = headers.map { "\($0.key): \($0.value)\r\n" }.joined()
            let head = "HTTP/1.1 \(status) X\r\n\(fields)Content-Length: \(body.utf8.count)\r\n"
            _ = write(connection, Array((head + "Connection: close\r\n\r\n" + body).utf8))
        case .hang:
            // Until the client closes the connection.
            var byte: UInt8 = 0
            while recv(connection, &byte, 1, 0) > 0 {}
        case .close: break
        case .endless:
            var goesOn = write(connection, Array("HTTP/1.1 200 OK\r\n\r\n".utf8))
            let chunk = [UInt8](repeating: 0x61, count: 16_384)
            while goesOn { goesOn = write(connection, chunk) }
        case .interim:
            let hint = Array("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".utf8)
            while write(connection, hint) {}
        }
    }

    private func write(_ connection: Int32, _ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) } > 0
    }

    private func read(_ connection: Int32) -> Request? {
        var bytes: [UInt8] = []
        while true {
            if let request = Self.parse(bytes) { return request }
            var chunk = [UInt8](repeating: 0, count: 65_536)
            let count = recv(connection, &chunk, chunk.count, 0)
            guard count > 0 else { return nil }
            bytes += chunk[..<count]
        }
    }

    private static func parse(_ bytes: [UInt8]) -> Request? {
        let data = Data(bytes)
        guard let end = data.range(of: Data("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: data[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = line[line.index(after: colon)...]
                .trimmingCharacters(in: .whitespaces)
        }
        let body = Array(data[end.upperBound...])
        guard body.count >= Int(headers["content-length"] ?? "0") ?? 0 else { return nil }
        return Request(head: lines[0], headers: headers, body: body)
    }
}
