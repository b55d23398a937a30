import CountersignGatewayTesting
import Foundation
import GatewayModel
import Testing

@testable import GatewayPostgreSQL

extension PostgreSQLTests {
    @Suite(.timeLimit(.minutes(1)))
    struct ArrivalTests {
        /// Waits until `arrivals` notes a change of the app after the ticket was taken.
        private static func arrival(_ arrivals: EventArrivals, since ticket: EventArrivals.Ticket) async {
            await withCheckedContinuation { continuation in
                _ = arrivals.wait(for: "shop", since: ticket) { continuation.resume() }
            }
        }

        @Test func eventsOfAnotherGatewayWakeWaitingRequests() async throws {
            try await TestDatabase.use { database in
                let (here, there) = (try database.openEvents(), try database.openEvents())
                defer {
                    here.close()
                    there.close()
                }
                // A poll always wakes an app without a waiter at the previous poll. This wait makes the app known.
                await Self.arrival(here.arrivals, since: here.arrivals.ticket)
                for number in 0..<3 {
                    let ticket = here.arrivals.ticket
                    async let woken: Void = Self.arrival(here.arrivals, since: ticket)
                    #expect(try there.store(.of(["m-\(number)"])).get().accepted == 1)
                    await woken
                }
                #expect(try database.log.ids().count == 3)
            }
        }
    }
}
