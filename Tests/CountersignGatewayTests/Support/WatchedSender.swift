import Foundation
import Testing

@testable import GatewayHTTP

/// A TCP client of this process. The server's side reads only when a test calls `read`.
final class WatchedSender: Sendable {
    let passes = PassCount()
    let connection: WatchedConnection
    private let near: Int32
    private let far: Int32

    /// Whether the system reports how much was read from a connection.
    static let isToldWhatIsTaken: Bool = {
        #if os(Linux)
            true
        #else
            false
        #endif
    }()

    init(of watch: ConnectionWatch, in phase: WatchedConnection.Phase) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        let sender = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        far = sender
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isConnected = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, size) == 0 && listen(listener, 1) == 0
                    && getsockname(listener, address, &size) == 0 && connect(sender, address, size) == 0
            }
        }
        try #require(isConnected)
        near = accept(listener, nil, nil)
        try #require(near >= 0)
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        for end in [near, far] {
            setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        connection = WatchedConnection(socket: near, passes: passes)
        watch.add(connection)
        connection.enter(phase, at: .now())
    }

    deinit { for end in [near, far] { close(end) } }

    /// Sends one byte, and returns once it has arrived.
    func send() throws {
        var byte: UInt8 = 0x20
        try #require(Foundation.send(far, &byte, 1, Int32(MSG_NOSIGNAL)) == 1)
        try #require(recv(near, &byte, 1, Int32(MSG_PEEK)) == 1)
    }

    /// Half-closes the connection, and returns once the server's side has noticed.
    func endSending() {
        shutdown(far, Int32(SHUT_WR))
        var byte: UInt8 = 0
        _ = recv(near, &byte, 1, Int32(MSG_PEEK))
    }

    /// Reads the received bytes on the server's side.
    func read() throws {
        var bytes = [UInt8](repeating: 0, count: 64)
        try #require(recv(near, &bytes, bytes.count, 0) > 0)
    }

    var isOpen: Bool {
        var byte: UInt8 = 0
        return recv(far, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) != 0
    }

    /// Blocks until the connection is closed.
    var isClosedByTheWatch: Bool {
        var byte: UInt8 = 0
        return recv(far, &byte, 1, 0) == 0
    }
}
