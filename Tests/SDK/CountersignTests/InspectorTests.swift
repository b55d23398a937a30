import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery
@testable import CountersignTransport

@Suite(.closing, .timeLimit(.minutes(5)))
struct InspectorTests {
    @Test func theInspectorShowsWaitingEventsAndReasonsWithoutTheToken() async throws {
        var bench = try Bench()
        bench.configuration.authenticationRetry.maximumServerDelay = .infinity
        bench.transport.setHandler { _ in
            TransportResponse(
                status: 401, headers: [("Retry-After", "1e300")],
                body: Array(#"{"success":false,"auth_error":{"error_code":22,"reason":"EXPIRED"}}"#.utf8))
        }
        let client = try bench.makeClient()
        // The sample of TestingYourIntegration.md.
        let inspector = CountersignInspector(client)
        print(await inspector.inspect())
        let before = await inspector.inspect()
        #expect(before.claims == nil && before.userID == nil && before.verdicts.isEmpty)
        #expect("\(before)".contains("token    not readable"))
        let end = Int(bench.clock.now.timeIntervalSince1970) + 342
        let token = SignedToken.fake(subject: "ada", expiresAt: end)
        client.identify(userID: "ada", token: token)
        client.track("Order Completed")
        await client.flush()
        var verdicts = client.authenticationFailures.makeAsyncIterator()
        _ = await verdicts.next()
        var inspection = await inspector.inspect()
        // The verdict reaches the inspector through another task.
        for await next in inspector.inspections(every: 1) {
            inspection = next
            if !next.verdicts.isEmpty { break }
            bench.clock.advance(to: await bench.clock.waitForSleeper())
        }
        #expect(inspection.userID == "ada")
        #expect(inspection.claims?["sub"] == "ada")
        #expect(inspection.snapshot.queued == 2)
        #expect(inspection.verdicts.map(\.code) == [.expired])
        let text = "\(inspection)"
        for part in [
            "user     ada, session ", #""sub":"ada""#, "queue    2 events in ", "0 sent",
            "waiting  ada: EXPIRED, 1 failures, ", "verdict  ", "22 EXPIRED, ada, 1 times",
        ] {
            #expect(text.contains(part), "\(part)")
        }
        #expect(!text.contains(token) && !text.contains("c2ln") && !text.contains("Order"))
        // An `exp` outside the range of dates.
        let odd = Data(#"{"sub":"ada","exp":1e30}"#.utf8).base64EncodedString()
        client.setToken("e30." + odd.replacingOccurrences(of: "=", with: "") + ".c2ln")
        await client.flush()
        #expect("\(await inspector.inspect())".contains(", ends in "))
    }
}
