internal import Countersign
internal import CountersignCore
internal import CountersignDelivery
internal import CountersignJOSE
internal import CountersignTransport
internal import Foundation

/// A simulated device: an SDK client with its own queue, network and users.
final class DemoDevice: Sendable {
    private struct State {
        var recorded = 0
        var identified: [String: Int] = [:]
        var queued = 0
        var hasHeldARequest = false
    }

    /// The property with an event's number, which identifies it in the database.
    static let rowProperty = "replay_row"

    let plan: DemoPlan.Device
    let network: DemoNetwork
    private let tokens: DemoTokens
    private let client: CountersignClient
    private let state = Lock(State())

    init(plan: DemoPlan.Device, endpoint: URL, writeKey: String, key: SigningKey, folder: URL) throws {
        self.plan = plan
        tokens = DemoTokens(key: key)
        network = DemoNetwork(over: makeDefaultTransport(), tokens: tokens)
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: writeKey)
        configuration.instanceName = plan.name
        configuration.dataDirectory = folder
        configuration.context.appVersion = plan.appVersion
        configuration.flushPolicy = FlushPolicy(eventCount: 20, interval: 0.5, onBackground: false)
        configuration.networkRetry = RetryPolicy(baseDelay: 0.2, maximumDelay: 1)
        configuration.authenticationRetry = RetryPolicy(baseDelay: 0.5, maximumDelay: 5)
        configuration.tokenProvider = { [tokens] request in
            try tokens.token(for: request.userID, reason: request.reason)
        }
        client = try CountersignClient(configuration: configuration, transport: network)
    }

    var recorded: Int { state.withLock { $0.recorded } }
    /// The number of identify events of each user.
    var identified: [String: Int] { state.withLock { $0.identified } }
    var queued: Int { state.withLock { $0.queued } }
    /// The number of tokens that replaced an expired or rejected one.
    var refreshed: Int { tokens.refreshed }

    /// Records all events, distributed over some seconds, while the SDK sends.
    func record(seconds: Double) async throws {
        let start = Date()
        let count = plan.rows.count
        var index = 0
        var user: String?
        while index < count {
            let first = plan.rows[index]
            if first.event.userID != user {
                user = first.event.userID
                client.identify(userID: first.event.userID)
                state.withLock { $0.identified[first.event.userID, default: 0] += 1 }
            }
            setNetwork(at: index, of: count)
            let due = min(
                count, max(index + 1, Int(Date().timeIntervalSince(start) / seconds * Double(count))))
            let rows = plan.rows[index..<min(due, index + 50)].prefix { $0.event.userID == user }
            try await record(rows)
            index += rows.count
            let wait = Double(index) / Double(count) * seconds - Date().timeIntervalSince(start)
            if wait > 0 { try await Task.sleep(for: .seconds(wait)) }
        }
        network.setCut(false)
    }

    /// Sends the remaining events. Throws `CancellationError`.
    func drain(until deadline: Date) async throws {
        while true {
            let result = await client.flush()
            state.withLock { $0.queued = result.queued }
            if result.isComplete || plan.role == .forged || Date() > deadline { return }
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    func close() async {
        await client.close()
    }

    private func record(_ rows: ArraySlice<DemoPlan.Row>) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for row in rows {
                var properties = row.event.properties
                properties[Self.rowProperty] = .integer(Int64(row.number))
                group.addTask { [client, properties] in
                    try await client.record(row.event.name, kind: row.event.kind, properties: properties)
                }
            }
            try await group.waitForAll()
        }
        state.withLock { $0.recorded += rows.count }
    }

    /// Cuts one device's network for a third of its events. Delays one request of each honest device until its
    /// token has expired.
    private func setNetwork(at index: Int, of count: Int) {
        if plan.role == .losesNetwork { network.setCut(index >= count / 6 && index < count / 2) }
        let slow = plan.role == .losesNetwork ? count / 2 : count / 4
        guard plan.role != .forged, index >= slow else { return }
        let isFirst = state.withLock { state in
            defer { state.hasHeldARequest = true }
            return !state.hasHeldARequest
        }
        if isFirst { network.holdNext() }
    }
}
