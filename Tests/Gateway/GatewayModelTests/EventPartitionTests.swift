import CountersignCore
import Testing

@testable import GatewayModel

struct EventPartitionTests {
    @Test func anEventAssignedToAUserLaterStaysInThePartitionOfItsDevice() throws {
        let (user, count) = ("ada", 4)
        let users = EventPartition.index(of: user, count: count)
        let device = try #require(
            (0..<100).map { "device-\($0)" }.first { EventPartition.index(of: $0, count: count) != users })
        for index in 0..<count {
            let partition = EventPartition(index, of: count)
            let ofUser = partition.has(sender: "sender", userID: user, anonymousID: device)
            #expect(ofUser == (index == users))
            let assigned = partition.has(
                sender: EventSender.anonymousContent, userID: user, anonymousID: device)
            #expect(assigned == (index == EventPartition.index(of: device, count: count)))
        }
        let isInWhole = EventPartition.whole.has(sender: nil, userID: nil, anonymousID: nil)
        #expect(isInWhole)
    }
}
