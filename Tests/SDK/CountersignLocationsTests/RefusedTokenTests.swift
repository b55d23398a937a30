import Foundation
import Testing

@testable import CountersignLocations

/// Rejected tokens that cannot be refreshed.
struct RefusedTokenTests {
    private let now = Date(timeIntervalSince1970: 1_750_000_000)

    private func machine(_ pair: TokenPair) -> RefreshMachine {
        var machine = RefreshMachine(configuration: AuthorizationConfiguration())
        machine.adopted(pair, isOnDisk: true, now: now, uptime: 0, fraction: 1)
        return machine
    }

    private func retryAt(_ machine: inout RefreshMachine, _ uptime: TimeInterval) -> TimeInterval? {
        let demand = machine.demand(rejected: machine.generation, hasWaited: false, uptime: uptime)
        guard case .unavailable(_, let instant) = demand else { return nil }
        return instant
    }

    /// The response to a request with an earlier token may arrive late.
    @Test func acceptanceOfAnEarlierTokenDoesNotResetALaterOnesBackoff() {
        var machine = machine(TokenPair(accessToken: "a"))
        machine.adopted(TokenPair(accessToken: "b"), isOnDisk: true, now: now, uptime: 0, fraction: 1)
        #expect(retryAt(&machine, 0) == 2)
        #expect(retryAt(&machine, 2) == nil)
        machine.accepted(machine.generation - 1)
        #expect(retryAt(&machine, 2) == 6, "the back-off continues to grow")
        machine.accepted(machine.generation)
        #expect(retryAt(&machine, 6) == nil)
        #expect(retryAt(&machine, 6) == 8)
    }

    @Test func withoutAnAccessTokenNothingIsSentAgain() {
        // There is no address to refresh at.
        var machine = machine(TokenPair(refreshToken: "r"))
        for uptime in [0.0, 10] {
            let demand = machine.demand(rejected: nil, hasWaited: false, uptime: uptime)
            guard case .unavailable(let explanation, nil) = demand else {
                Issue.record("\(demand)")
                continue
            }
            #expect(explanation.code == "no_access_token")
        }
    }
}
