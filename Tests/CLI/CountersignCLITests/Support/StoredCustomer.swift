import CountersignCore
import GatewayModel
import GatewayStorage

/// Stores a customer of the app shop in a data directory, as a gateway does.
func storeCustomer(_ user: String, plan: String, in data: String) throws {
    let store = try SQLiteEventStore(path: data + "/events.sqlite", pendingBytes: 1 << 20)
    var change = CustomerChange(
        identifiers: [CustomerIdentifier(name: CustomerIdentifier.hardName, value: user)], atMilliseconds: 1)
    change.properties = [("plan", JSONValue.string(plan).bytes)]
    store.append(
        EventBatch(appID: "shop", receivedMilliseconds: 1, body: [], events: [], customers: [change])
    ) { _ in }
    // Closing the store writes pending batches.
    store.close()
}

/// Stores an event of a user of the app shop in a data directory, as a gateway does.
func storeEvent(of user: String, in data: String) throws {
    let store = try SQLiteEventStore(path: data + "/events.sqlite", pendingBytes: 1 << 20)
    let event = EventBatch.Event(
        messageID: user, kind: .track, userID: user, anonymousID: nil, name: "n", timestampMilliseconds: 1,
        json: 0..<2)
    store.append(
        EventBatch(appID: "shop", receivedMilliseconds: 1, body: Array("{}".utf8), events: [event])
    ) { _ in }
    store.close()
}
