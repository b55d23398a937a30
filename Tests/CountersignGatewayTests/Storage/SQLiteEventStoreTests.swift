import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import Foundation
import Testing

@testable import CountersignGateway

@Suite(.timeLimit(.minutes(5)))
struct SQLiteEventStoreTests {
    @Test func belowTheFloorOfTheDiskNothingIsStoredAndReadinessSaysSo() throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        let data = fixture.dataDirectory
        fixture.gateway.stop()
        defer { try? FileManager.default.removeItem(atPath: data) }
        // Started with room, then the floor is above what is left: the first write already fails.
        var configuration = GatewayConfiguration(dataDirectory: data)
        configuration.port = 0
        configuration.diskFloorBytes = 1 << 50
        let full = try Gateway(configuration: configuration)
        defer { full.stop() }
        #expect(throws: GatewayError.self) { try full.start() }
    }

    @Test func aStoreBelowItsFloorRefusesAndKeepsWhatItHas() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("events.sqlite").path
        let open = try SQLiteEventStore(path: path, pendingBytes: 1 << 20)
        #expect(try append("m-1", to: open).get() == AppendOutcome(accepted: 1, duplicates: 0))
        open.close()
        let full = try SQLiteEventStore(path: path, pendingBytes: 1 << 20, diskFloorBytes: 1 << 50)
        #expect(throws: StoreFailure.self) { try append("m-2", to: full).get() }
        full.close()
        let again = try SQLiteEventStore(path: path, pendingBytes: 1 << 20)
        #expect(try append("m-1", to: again).get() == AppendOutcome(accepted: 0, duplicates: 1))
        again.close()
        let reader = try SQLiteConnection(path: path)
        #expect(
            try reader.first("SELECT events, bytes FROM app_usage") { [$0.int(0), $0.int(1)] } == [1, 2])
    }

    @Test func readinessListsItsChecks() throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        defer { fixture.remove() }
        let connection = try RawConnection(port: fixture.gateway.port)
        let lines = connection.get("/readyz?verbose")?.body.split(separator: "\n").map(String.init) ?? []
        #expect(
            lines.map { $0.prefix { $0 != ":" } } == [
                "[+] storage", "[+] disk", "[+] queue", "[+] apps", "[+] draining", "ready",
            ])
    }

    @Test func retentionRunsBesideTheRequests() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("events.sqlite").path
        let isStored = Lock(false)
        let asked = DispatchSemaphore(value: 0)
        let store = try SQLiteEventStore(
            path: path, pendingBytes: 1 << 20, retentionSeconds: 0,
            retention: {
                if isStored.withLock({ $0 }) { asked.signal() }
                var rules = AppRules()
                rules.retentionDays = 1
                return ["shop": rules]
            })
        // Received in 1970.
        _ = try append("m-1", to: store).get()
        isStored.withLock { $0 = true }
        // It asks again when the sweep before is done.
        try asked.waitForSignal()
        try asked.waitForSignal()
        store.close()
        let reader = try SQLiteConnection(path: path)
        #expect(try reader.first("SELECT count(*) FROM event") { $0.int(0) } == 0)
        #expect(try reader.first("SELECT events FROM app_usage") { $0.int(0) } == 0)
    }

    /// A file of the version before, in which message ids were unique in an app.
    @Test func whatWasStoredBeforeMessageIDsHadSendersIsStillADuplicate() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("events.sqlite").path
        do {
            let old = try SQLiteConnection(path: path)
            try old.execute("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL")
            try Schema.migrate(old, Array(SQLiteEventStore.migrations.prefix(5)))
            for (id, user, device, body) in [
                ("m-1", "'jane'", "'d-1'", "{}"), ("m-2", "NULL", "'d-1'", "{}"),
                ("m-3", "NULL", "NULL", "{}"),
                ("sha256-a", "NULL", "'cookie-1'", #"{"customer_ids":{"cookie":"cookie-1"}}"#),
                ("sha256-b", "NULL", "'d-1'", #"{"name":"ce"}"#), ("gone", "'jane'", "NULL", "{}"),
            ] {
                try old.execute(
                    """
                    INSERT INTO event
                        (app_id, message_id, type, user_id, anonymous_id, timestamp_ms, received_ms, body)
                    VALUES ('shop', '\(id)', 'track', \(user), \(device), 1, 2, '\(body)')
                    """)
            }
            try old.execute("DELETE FROM event WHERE message_id = 'gone'")
        }
        let store = try SQLiteEventStore(path: path, pendingBytes: 1 << 20)
        defer { store.close() }
        let again = AppendOutcome(accepted: 0, duplicates: 1)
        let new = AppendOutcome(accepted: 1, duplicates: 0)
        #expect(try append("m-1", user: "jane", device: "d-2", to: store).get() == again)
        #expect(try append("m-1", user: "john", device: "d-1", to: store).get() == new)
        #expect(try append("m-1", device: "jane", to: store).get() == new)
        #expect(try append("m-2", device: "d-1", to: store).get() == again)
        #expect(try append("m-2", user: "d-1", to: store).get() == new)
        #expect(try append("m-3", to: store).get() == again)
        // The customer has signed in since, and the event comes again with the id that its content gives it.
        #expect(
            try append("sha256-a", user: "jane", device: "cookie-1", isIdentifiedByContent: true, to: store)
                .get()
                == again)
        #expect(try append("sha256-b", device: "d-1", to: store).get() == again)
        #expect(try append("m-4", to: store).get() == new)
        let reader = try SQLiteConnection(path: path, mode: .readOnly)
        // Numbers of events that are gone are not given out again.
        let numbers = try reader.all("SELECT seq FROM event ORDER BY seq") { $0.int(0) }
        #expect(numbers.prefix(5) == [1, 2, 3, 4, 5])
        #expect(numbers.count == 9 && numbers.dropFirst(5).allSatisfy { $0 > 6 })
        let plan = try reader.all(
            "EXPLAIN QUERY PLAN SELECT body FROM event WHERE app_id = 'shop' AND message_id = 'm-1'"
        ) { $0.text(3) }
        #expect(plan.allSatisfy { $0.contains("USING INDEX event_once (app_id=? AND message_id=?)") })
    }

    private func append(
        _ id: String, user: String? = nil, device: String? = nil, isIdentifiedByContent: Bool = false,
        to store: SQLiteEventStore
    ) throws -> Result<AppendOutcome, StoreFailure> {
        let event = EventBatch.Event(
            messageID: id, kind: .track, userID: user, anonymousID: device, timestampMilliseconds: 0,
            json: 0..<2, isIdentifiedByContent: isIdentifiedByContent)
        let batch = EventBatch(
            appID: "shop", receivedMilliseconds: 0, body: Array("{}".utf8), events: [event])
        let result = Lock<Result<AppendOutcome, StoreFailure>?>(nil)
        let done = DispatchSemaphore(value: 0)
        store.append(batch) { outcome in
            result.withLock { $0 = outcome }
            done.signal()
        }
        try done.waitForSignal()
        return result.withLock { $0 } ?? .failure(StoreFailure(reason: .failed, detail: "no answer"))
    }
}
