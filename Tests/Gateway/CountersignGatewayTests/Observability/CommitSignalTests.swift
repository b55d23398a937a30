import CountersignCore
import GatewayModel
import Testing

@testable import CountersignGateway

struct CommitSignalTests {
    /// Each look at a closure in a generic container wraps it once more: calls would go deeper with every commit.
    @Test func aCommitCostsWhatTheFirstOneDid() throws {
        let signal = CommitSignal()
        let places = Lock<[UInt]>([])
        signal.whenCommitted {
            var here = 0
            withUnsafeMutablePointer(to: &here) { pointer in
                let place = UInt(bitPattern: pointer)
                places.withLock { $0.append(place) }
            }
        }
        for _ in 0..<1_000 { signal.commitEnded(CommitRecord(batches: 1, events: 1, seconds: 0)) }
        let found = places.withLock { $0 }
        #expect(found.count == 1_000)
        #expect(try #require(found.max()) - #require(found.min()) < 1_024)
        signal.commitEnded(CommitRecord(batches: 1, events: 0, seconds: 0))
        #expect(places.withLock { $0.count } == 1_000)
    }
}
