import GatewayModel
import Testing

@testable import GatewayStorage

/// Rules of partition leases, without a clock or a disk.
struct ConsumerLeasesTests {
    private func lease(_ id: String) -> HeldLease {
        HeldLease(id: id, partition: 0, from: 0, last: 5, scannedThrough: 7)
    }

    /// Calls that mutate the leases cannot be arguments of `#expect`.
    private func check(
        _ isTrue: Bool, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(isTrue, comment, sourceLocation: sourceLocation)
    }

    private func leased(_ id: String) -> ConsumerLeases {
        var leases = ConsumerLeases(partitions: 1, generation: 1)
        check(leases.reserve(0, at: 0))
        check(leases.begin(lease(id), until: 100))
        return leases
    }

    @Test func aPartitionIsLeasedOnceUntilTheLeaseExpires() {
        var leases = leased("a")
        check(!leases.reserve(0, at: 99))
        #expect(leases.deadline(of: 0, at: 50) == 100)
        check(leases.reserve(0, at: 100))
        check(!leases.reserve(0, at: 100), "a reserved partition cannot be leased")
        check(leases.begin(lease("b"), until: 200))
        #expect(leases.find("a") == .expired)
        #expect(leases.find("b") == .lease(lease("b")))
    }

    @Test func aClockThatIsSetBackDoesNotProlongALease() {
        let (year, most): (Int64, Int64) = (31_536_000_000, 600_000)
        var leases = ConsumerLeases(partitions: 1, generation: 1)
        check(leases.reserve(0, at: year))
        check(leases.begin(lease("a"), until: year + most))
        check(!leases.reserve(0, at: year - 30_000), "a small clock correction ends no lease")
        #expect(leases.deadline(of: 0, at: 0) == nil)
        check(leases.reserve(0, at: 0))
    }

    @Test func anExpiredLeaseIsValidUntilItsPartitionIsLeased() {
        var leases = leased("a")
        #expect(leases.find("a") == .lease(lease("a")))
        check(leases.reserve(0, at: 500))
        #expect(leases.find("a") == .expired)
        leases.abandon(0)
        #expect(leases.find("a") == .expired, "the old lease is not restored")
    }

    @Test func aPartitionIsNotLeasedDuringAnAcknowledgement() {
        var leases = leased("a")
        leases.acknowledge(lease("a"))
        check(!leases.reserve(0, at: 500))
        #expect(leases.find("a") == .busy)
        leases.finish(lease("a"), at: 7)
        #expect(leases.find("a") == .acknowledged(7))
        check(leases.reserve(0, at: 0))
        check(leases.begin(lease("b"), until: 100))
        #expect(leases.find("a") == .expired)
    }

    @Test func aPartialAcknowledgementKeepsTheRestLeased() {
        var leases = leased("a")
        leases.acknowledge(lease("a"))
        leases.finish(lease("a"), at: 3)
        guard case .lease(let rest) = leases.find("a") else {
            Issue.record("the rest is not leased")
            return
        }
        #expect(rest.from == 3)
        check(!leases.reserve(0, at: 50))
    }

    @Test func anAcknowledgementThatFailedLeavesTheLease() {
        var leases = leased("a")
        leases.acknowledge(lease("a"))
        leases.fail(lease("a"), isOver: false)
        #expect(leases.find("a") == .lease(lease("a")))
        leases.acknowledge(lease("a"))
        leases.fail(lease("a"), isOver: true)
        #expect(leases.find("a") == .expired)
    }

    @Test func anAcknowledgementNamesAPositionOfTheLease() throws {
        var lease = lease("a")
        lease.from = 3
        #expect(try lease.position(through: nil) == 7)
        for (given, position) in [(3, 3), (4, 4), (5, 7), (6, 7), (7, 7)] as [(Int64, Int64)] {
            #expect(try lease.position(through: given) == position)
        }
        for outside in [2, 8] as [Int64] {
            #expect(throws: ConsumerFailure.self) { try lease.position(through: outside) }
        }
    }
}
