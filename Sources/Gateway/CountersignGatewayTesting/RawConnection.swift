internal import Foundation

/// A TCP connection for sending arbitrary bytes.
package final class RawConnection: TestClient {
    /// Seconds from the creation until reading fails. A test cannot cancel a thread that waits for a socket.
    private static let longestLife = 120.0

    private let descriptor: Int32
    private let end = DispatchTime.now() + longestLife
    private var buffer: [UInt8] = []
    /// Whether the server has closed the connection. A read time-out does not count.
    private var hasEnded = false

    /// On Linux, all addresses in 127.0.0.0/8 are local.
    package static var canChooseItsAddress: Bool {
        #if os(Linux)
            true
        #else
            false
        #endif
    }

    package init(port: UInt16, from source: String? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if let source {
            var own = sockaddr_in()
            own.sin_family = sa_family_t(AF_INET)
            own.sin_addr.s_addr = inet_addr(source)
            _ = withUnsafePointer(to: &own) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { throw POSIXError(.ECONNREFUSED) }
        // The kernel must not join the pieces that a test sends.
        var isOn: Int32 = 1
        setsockopt(
            descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    deinit {
        Foundation.close(descriptor)
    }

    package var isOverdue: Bool { DispatchTime.now() > end }

    /// Ends sending and receiving.
    package func close() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Returns false if the server has closed the connection, or has not read for 20 s.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { return false }
            rest = rest.dropFirst(sent)
        }
        return true
    }

    package func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    package func send(_ text: String) { send(Array(text.utf8)) }

    package func send(
        _ method: String, _ target: String, _ headers: [String: String], _ body: [UInt8]?
    ) -> TestAnswer? {
        let fields = requestFields(headers, body).map { "\($0.name): \($0.value)\r\n" }.joined()
        send(Array("\(method) \(target) HTTP/1.1\r\n\(fields)\r\n".utf8) + (body ?? []))
        return answer()
    }

    /// The next response; nil without a complete head or body.
    package func answer() -> TestAnswer? {
        guard let end = fill(until: Array("\r\n\r\n".utf8)) else { return nil }
        let head = String(decoding: buffer[..<end], as: UTF8.self)
        buffer.removeFirst(end + 4)
        let lines = head.components(separatedBy: "\r\n")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = line[line.index(after: colon)...]
                .trimmingCharacters(in: .whitespaces)
        }
        // A stream without end is read line by line.
        let isEndless = headers["content-type"]?.hasPrefix("text/event-stream") == true
        var body: [UInt8]? = []
        if headers["transfer-encoding"] == "chunked" {
            if !isEndless { body = chunks() }
        } else {
            let length = Int(headers["content-length"] ?? "0") ?? 0
            while buffer.count < length { guard read() else { return nil } }
            body = Array(buffer.prefix(length))
            buffer.removeFirst(length)
        }
        return body.map {
            TestAnswer(
                status: Int(lines[0].split(separator: " ")[1]) ?? 0, headers: headers,
                body: String(decoding: $0, as: UTF8.self))
        }
    }

    /// A chunked body without trailers; nil if it is truncated.
    private func chunks() -> [UInt8]? {
        var body: [UInt8] = []
        while let size = line().flatMap({ Int($0, radix: 16) }) {
            while buffer.count < size + 2 { guard read() else { return nil } }
            body += buffer.prefix(size)
            buffer.removeFirst(size + 2)
            if size == 0 { return body }
        }
        return nil
    }

    /// The next line without its end; nil if the connection ends or times out before.
    package func line() -> String? {
        guard let end = fill(until: [0x0A]) else { return nil }
        let line = String(decoding: buffer[..<end], as: UTF8.self)
        buffer.removeFirst(end + 1)
        return line.hasSuffix("\r") ? String(line.dropLast()) : line
    }

    /// Waits until the server closes the connection. Returns false after a time-out, or if unread data is left.
    package func isClosedByServer() -> Bool {
        while read() {}
        return hasEnded && buffer.isEmpty
    }

    /// Sends one byte at a time. Returns true if the server closes the connection before all bytes are sent.
    package func isClosedWhileDripping(count: Int, everyMilliseconds: Int32) -> Bool {
        for _ in 0..<count {
            send([UInt8(ascii: "x")])
            var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            // Returns as soon as the server has sent data or closed the connection.
            if poll(&state, 1, everyMilliseconds) > 0, !read() { return hasEnded }
        }
        return false
    }

    private func fill(until terminator: [UInt8]) -> Int? {
        while true {
            if buffer.count >= terminator.count {
                for start in 0...(buffer.count - terminator.count)
                where buffer[start..<start + terminator.count].elementsEqual(terminator) {
                    return start
                }
            }
            guard read() else { return nil }
        }
    }

    private func read() -> Bool {
        guard !isOverdue else { return false }
        var chunk = [UInt8](repeating: 0, count: 16_384)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        guard count > 0 else {
            hasEnded = count == 0 || errno != EAGAIN
            return false
        }
        buffer.append(contentsOf: chunk[..<count])
        return true
    }
}
