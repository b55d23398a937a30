internal import CountersignCore
import Testing

@testable import CountersignCLI

struct DemoPlanTests {
    private func replay(_ users: String) -> Replay {
        Replay(
            source: "test",
            events: users.split(separator: " ").map {
                ReplayEvent(userID: String($0), name: "E", properties: [:])
            })
    }

    @Test func everyEventIsAssignedToOneHonestDevice() {
        let plan = DemoPlan(replay: replay("a b a c d a b e"), devices: 4)
        #expect(plan.devices.count == 4)
        #expect(plan.honestRows.map(\.number).sorted() == Array(0..<8))
    }

    @Test func aUserStaysOnOneDeviceAndKeepsTheOrder() {
        let plan = DemoPlan(replay: replay("a b a c b a"), devices: 3)
        let device = plan.devices.first { $0.rows.contains { $0.event.userID == "a" } }
        let rows = device?.rows.filter { $0.event.userID == "a" }.map(\.number)
        #expect(rows == [0, 2, 5])
        #expect(plan.devices[1].rows.map(\.event.userID) == ["b", "b", "c"])
    }

    @Test func oneDeviceLosesItsNetworkAndOneForgesTokens() {
        let plan = DemoPlan(replay: replay("a b c"), devices: 4)
        #expect(plan.devices.map(\.role) == [.steady, .losesNetwork, .steady, .forged])
        #expect(DemoPlan(replay: replay("a"), devices: 4).devices.map(\.role) == [.losesNetwork, .forged])
    }

    @Test(arguments: [("a", 5, 2), ("a b", 5, 3), ("a b c", 2, 2)])
    func thereAreNoMoreDevicesThanUsersAndTheForgedOne(users: String, asked: Int, expected: Int) {
        #expect(DemoPlan(replay: replay(users), devices: asked).devices.count == expected)
    }

    @Test func theForgedDeviceRecordsEventsOfItsOwn() throws {
        let plan = DemoPlan(replay: replay("a b"), devices: 3)
        let forged = try #require(plan.devices.last)
        #expect(forged.rows.count == 20)
        #expect(forged.rows.allSatisfy { $0.event.userID == DemoPlan.forgedUser && $0.number >= 2 })
    }
}
