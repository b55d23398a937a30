import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayHTTP

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct InboxTests {
    /// Each signal must end a wait, also one that comes while the loop empties the inbox.
    @Test func noSignalIsLostWhileTheInboxIsEmptied() throws {
        let inbox = try Inbox()
        let count = 100_000
        Thread.detachNewThread {
            for number in 0..<count { inbox.signal(RequestTicket(connection: number, request: 0)) }
        }
        var taken = 0
        var ended: [RequestTicket] = []
        while taken < count {
            var state = pollfd(fd: inbox.reading, events: Int16(POLLIN), revents: 0)
            try #require(poll(&state, 1, 20_000) == 1)
            inbox.take(&ended)
            taken += ended.count
        }
        #expect(taken == count)
    }
}
