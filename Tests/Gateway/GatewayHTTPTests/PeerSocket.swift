import Foundation
import Testing

@testable import GatewayHTTP
@testable import GatewayModel

/// A connection in a table, without a loop.
final class PeerSocket: Sendable {
    let peer: Peer
    let isAdmitted: Bool
    private let near: Int32
    private let far: Int32

    init(
        in table: ConnectionTable, _ phase: Peer.Phase, unit: NetworkAddress? = nil,
        at now: UInt64 = MonotonicClock.now
    ) throws {
        var ends: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        (near, far) = (ends[0], ends[1])
        peer = Peer(socket: near, unit: unit, at: now)
        isAdmitted = table.add(peer, at: now)
        peer.enter(phase, at: now)
    }

    deinit { for end in [near, far] { close(end) } }

    var isOpen: Bool {
        var byte: UInt8 = 0
        return recv(far, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) != 0
    }
}
