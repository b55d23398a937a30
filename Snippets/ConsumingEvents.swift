// Read an app's events in a backend, and accept a webhook's deliveries.
import CountersignConsumer
import Foundation

/// In place of your database, which would store bookings and progress in one transaction.
actor Ledger {
    private var bookings: [String] = []
    private var last: [Int: Int64] = [:]

    func book(_ batch: EventBatch) {
        for event in batch.events where event.sequence > last[batch.partition, default: 0] {
            bookings.append(event.messageID)
            last[batch.partition] = event.sequence
        }
    }
}

func bookEvents(of gateway: URL, token: String, in ledger: Ledger) async throws {
    let consumer = try EventConsumer(endpoint: gateway, app: "shop", token: token, name: "billing")
    for try await batch in consumer {
        await ledger.book(batch)  // commits
        try await batch.acknowledge()
    }
}

func readOn(after position: String?, of gateway: URL, token: String) async throws {
    let reader = try EventReader(endpoint: gateway, app: "shop", token: token, after: position)
    for try await page in reader {
        print(page.events.count, "events; the next page begins after", page.next)
    }
}

func accept(body: Data, headers: [String: String], secret: String) throws -> [ConsumedEvent] {
    let verifier = try WebhookVerifier(secrets: [secret])
    let delivery = try verifier.verify(body) { headers[$0] }
    return delivery.events
}
