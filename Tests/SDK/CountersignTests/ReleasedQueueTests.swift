import CountersignSQLite
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignBloomreach
@testable import CountersignLocations
@testable import CountersignTransport

/// Queues as version 0.1.0 wrote them, byte for byte. Every later version must deliver them.
@Suite(.closing)
struct ReleasedQueueTests {
    private typealias Row = (messageID: String, userID: String, sessionID: String, body: String)

    private static let schema = """
        PRAGMA user_version = 2;
        CREATE TABLE event (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            message_id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            session_id TEXT NOT NULL,
            queue_time_s INTEGER NOT NULL,
            body BLOB NOT NULL
        );
        CREATE TABLE quarantine (
            seq INTEGER PRIMARY KEY,
            message_id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            session_id TEXT NOT NULL,
            body BLOB NOT NULL,
            code TEXT NOT NULL,
            reason TEXT NOT NULL,
            quarantined_ms INTEGER NOT NULL
        );
        CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        INSERT INTO setting VALUES ('anonymous_id', '01a202dc-2806-73c8-b226-5ab86fe4ffb3');
        INSERT INTO setting VALUES ('queue_time', '0 1700000000');
        CREATE TABLE lease (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            holder TEXT NOT NULL,
            process_id INTEGER NOT NULL,
            until_uptime_ms INTEGER NOT NULL
        , duration_ms INTEGER NOT NULL DEFAULT 60000);
        CREATE INDEX event_user ON event (user_id, seq);
        """

    /// Recorded with `record`, `identify` and `record`.
    private static let native: [Row] = [
        (
            "01a202dc-27af-70d9-97ee-f865c91bf328", "", "018bcfe5-68fa-710a-82ba-4fd3cabcd7e4",
            #"{"type":"track","messageId":"01a202dc-27af-70d9-97ee-f865c91bf328","anonymousId":"01a202dc-2806-73c8-b226-5ab86fe4ffb3","timestamp":"2023-11-14T22:13:20.250Z","event":"Opened","context":{"library":{"name":"countersign-swift","version":"0.1.0"},"sessionId":"018bcfe5-68fa-710a-82ba-4fd3cabcd7e4"}}"#
        ),
        (
            "01a202dc-2806-73ca-9328-873199bf2ff3", "ada", "01a202dc-2806-73c9-8748-cd6099df60f0",
            #"{"type":"identify","messageId":"01a202dc-2806-73ca-9328-873199bf2ff3","userId":"ada","timestamp":"2023-11-14T22:13:20.250Z","traits":{"plan":"pro"},"context":{"library":{"name":"countersign-swift","version":"0.1.0"},"sessionId":"01a202dc-2806-73c9-8748-cd6099df60f0"}}"#
        ),
        (
            "01a202dc-2806-73cb-9509-ef419b9df6fc", "ada", "01a202dc-2806-73c9-8748-cd6099df60f0",
            #"{"type":"track","messageId":"01a202dc-2806-73cb-9509-ef419b9df6fc","userId":"ada","timestamp":"2023-11-14T22:13:20.250Z","event":"Order Completed","properties":{"total":42.5},"context":{"library":{"name":"countersign-swift","version":"0.1.0"},"sessionId":"01a202dc-2806-73c9-8748-cd6099df60f0"}}"#
        ),
    ]

    /// Recorded with `identifyCustomer` and `trackEvent`.
    private static let bloomreach: [Row] = [
        (
            "01a202dc-28b2-712b-a3a7-ffe5c6d79077", "shop", "01a202dc-2806-73cc-b0a1-60ce4e4845eb",
            #"{"url":"https://api.example/track/v2/projects/shop/customers","body":{"customer_ids":{"cookie":"867B440F-CDE7-43A6-8CA5-564176D7D7D0","registered":"ada@example.com"},"message_id":"01a202dc-28b2-712b-a3a7-ffe5c6d79077","properties":{},"timestamp":1700000000.25}}"#
        ),
        (
            "01a202dc-28b2-712c-a660-a5b36016b2c8", "shop", "01a202dc-2806-73cc-b0a1-60ce4e4845eb",
            #"{"url":"https://api.example/track/v2/projects/shop/customers/events","body":{"customer_ids":{"cookie":"867B440F-CDE7-43A6-8CA5-564176D7D7D0","registered":"ada@example.com"},"event_type":"purchase","message_id":"01a202dc-28b2-712c-a660-a5b36016b2c8","properties":{"total":42.5},"timestamp":1700000000.25}}"#
        ),
    ]

    /// Recorded with `insert`.
    private static let locations: [Row] = [
        (
            "8f6e2f0a-0000-4000-8000-000000000001", "", "01a202dc-28b2-712d-8b00-d9afd3d6b029",
            #"{"coords":{"latitude":46.05,"longitude":14.51},"timestamp":"2023-11-14T22:13:20.250Z","uuid":"8f6e2f0a-0000-4000-8000-000000000001"}"#
        )
    ]

    private func write(_ rows: [Row], to directory: URL, tokens: String) throws {
        let folder = directory.appendingPathComponent("tokens")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(tokens.utf8).write(to: folder.appendingPathComponent("tokens.json"))
        let file = try SQLiteConnection(path: directory.appendingPathComponent("queue.sqlite").path)
        try file.execute(Self.schema)
        for (number, row) in rows.enumerated() {
            try file.run(
                "INSERT INTO event VALUES (?, ?, ?, ?, 0, ?)", .integer(Int64(number + 1)),
                .text(row.messageID), .text(row.userID), .text(row.sessionID), .blob(Array(row.body.utf8)))
        }
        let bytes = rows.reduce(0) { $0 + $1.body.utf8.count + 100 }
        for (name, value) in [("rows", rows.count), ("recorded", rows.count), ("bytes", bytes)] {
            try file.run("INSERT INTO counter VALUES (?, ?)", .text(name), .integer(Int64(value)))
        }
    }

    private func text(_ request: TransportRequest) -> String { String(decoding: request.body, as: UTF8.self) }

    @Test func eventsOfSignedUsersAreDelivered() async throws {
        let bench = try Bench()
        let directory = bench.configuration.instanceDirectory
        try write(Self.native, to: directory, tokens: #"[{"token":"a.b.c","user":"ada"}]"#)
        try Data(#"{"users":{"wk_test":"ada"}}"#.utf8).write(
            to: directory.appendingPathComponent("user.json"))
        let client = try bench.makeClient()
        #expect(client.userID == "ada")
        #expect(await client.flush().isComplete)
        #expect(bench.gateway.batches.map(\.token) == [nil, "a.b.c"])
        let bodies = bench.transport.requests.map(text)
        #expect(bodies.count == 2)
        #expect(bodies.first?.hasPrefix(#"{"batch":["# + Self.native[0].body + "],") == true)
        let rest = Self.native[1...].map(\.body).joined(separator: ",")
        #expect(bodies.last?.hasPrefix(#"{"batch":["# + rest + "],") == true)
    }

    /// The app has moved to another project. Events of the former project are still sent there, under its
    /// key.
    @Test func eventsOfABloomreachProjectAreDelivered() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        let instance = directory.appendingPathComponent("bloomreach")
        try write(Self.bloomreach, to: instance, tokens: #"[{"token":"key-1","user":"shop"}]"#)
        try Data(
            #"{"cookie":"867B440F-CDE7-43A6-8CA5-564176D7D7D0","ids":{"registered":"ada@example.com"}}"#.utf8
        ).write(to: instance.appendingPathComponent("customer.json"))
        let device = try BloomreachDevice(directory: directory)
        #expect(device.client.customerIDs["registered"] == "ada@example.com")
        #expect(await device.client.flush().isComplete)
        #expect(device.requests.map { $0.header("Authorization") } == ["Token key-1", "Token key-1"])
        for (request, row) in zip(device.requests, Self.bloomreach) {
            #expect(row.body == #"{"url":"\#(request.url)","body":\#(text(request))}"#)
        }
        #expect(device.requests.count == 2)
    }

    @Test func locationsAreDelivered() async throws {
        let bench = LocationBench()
        try write(
            Self.locations, to: bench.directory.appendingPathComponent("locations"),
            tokens:
                #"[{"token":"{\"clockOffset\":0,\"known\":[650930707964705748],\"accessToken\":\"A0\"}","user":"access-token"}]"#
        )
        let client = try bench.make()
        #expect(try await client.sync().count == 1)
        let upload = try #require(bench.uploads.withLock { $0.first })
        #expect(text(upload.request) == #"{"location":"# + Self.locations[0].body + "}")
        #expect(upload.token == "Bearer A0")
    }
}
