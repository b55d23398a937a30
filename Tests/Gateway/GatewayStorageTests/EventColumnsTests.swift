import CountersignCore
import CountersignSQLite
import CountersignTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayStorage

/// Rows store keys as numbers and request UUIDs as bytes, to save space.
@Suite(.onSQLite("its own columns of events"), .timeLimit(.minutes(5)))
struct EventColumnsTests {
    private static let uuid = "01989f6e-7d3a-7c11-8e5b-0123456789ab"

    private let temporary = TemporaryFolder()
    private var path: String { temporary.url.appendingPathComponent("events.sqlite").path }

    init() throws {
        try FileManager.default.createDirectory(at: temporary.url, withIntermediateDirectories: true)
    }

    private func proof(_ request: String, key: String?, claims: String? = nil) -> EventProof {
        EventProof(
            verdict: .verified, keyID: key, enforcement: "required", dialect: "native", requestID: request,
            claims: claims)
    }

    private func store(
        _ id: String, _ proof: EventProof, body: String = "{}", app: String = "shop", in log: EventLogWriter
    ) throws {
        let event = EventBatch.Event(
            messageID: id, kind: .track, timestampMilliseconds: 0, json: 0..<body.utf8.count)
        let batch = EventBatch(
            appID: app, receivedMilliseconds: 1, body: Array(body.utf8), events: [event], proof: proof)
        #expect(try log.store([batch], counting: nil)[0].accepted == 1)
    }

    /// Proofs as a follower and as a list of the newest events read them.
    private func proofs() throws -> [[EventProof?]] {
        let reader = SQLiteEventLog(readers: SQLiteReaders(path: path), runs: OpenIndexRuns())
        let (query, limit) = (EventQuery(appID: "shop"), 100)
        return [
            try reader.follow(query, after: 0, limit: limit).events.map(\.proof),
            try reader.newest(query, before: nil, limit: limit).events.reversed().map(\.proof),
        ]
    }

    private func rows(_ columns: String, from table: String = "event") throws -> [String] {
        try SQLiteConnection(path: path, mode: .readOnly).all(
            "SELECT concat FROM (SELECT seq, \(columns) AS concat FROM \(table)) ORDER BY seq"
        ) { $0.optionalText(0) ?? "" }
    }

    @Test func eventsAreReadAsStored() throws {
        // Only the first is a UUID in canonical form, which can be stored as bytes.
        let requests = [
            Self.uuid, Self.uuid.uppercased(), "r-1", "01989f6e+7d3a-7c11-8e5b-0123456789ab", "",
            "01989f6e-7d3a-7c11-8e5b-0123456789a\u{E9}",
        ]
        // The last two are equal as Swift strings.
        let keys = ["k-1", "k-2", "k-1", nil, "zo\u{E9}", "zoe\u{301}"]
        let log = try EventLogWriter(path: path)
        let stored = zip(requests, keys).map { proof($0, key: $1) }
        for (number, proof) in stored.enumerated() { try store("m-\(number)", proof, in: log) }
        log.close()
        let found = try proofs()
        for found in found {
            #expect(found.map { $0.map { Array($0.requestID.utf8) } } == requests.map { Array($0.utf8) })
            #expect(found.map { $0?.keyID.map { Array($0.utf8) } } == keys.map { $0.map { Array($0.utf8) } })
        }
        #expect(try rows("key_number") == ["1", "2", "1", "", "3", "4"])
        #expect(try rows("coalesce(key_id, request_id)") == [""] + requests.dropFirst())
        #expect(try rows("length(request_uuid)") == ["16", "", "", "", "", ""])
        #expect(try rows("request_id", from: "stored_event") == requests)
        #expect(try rows("key_id", from: "stored_event") == keys.map { $0 ?? "" })
    }

    /// The number of a key whose transaction was rolled back goes to another key.
    @Test func aRolledBackTransactionReservesNoKeyNumber() throws {
        let log = try EventLogWriter(path: path)
        defer { log.close() }
        try store("m-1", proof("r-1", key: "k-1"), in: log)
        try log.connection.execute("PRAGMA max_page_count = 1")
        let large = "\"" + String(repeating: "x", count: 100_000) + "\""
        #expect(throws: SQLiteError.self) {
            try store("m-2", proof("r-2", key: "k-2"), body: large, in: log)
        }
        try log.connection.execute("PRAGMA max_page_count = 1000000")
        try store("m-3", proof("r-3", key: "k-3"), in: log)
        try store("m-2", proof("r-2", key: "k-2"), body: large, in: log)
        for found in try proofs() { #expect(found.map { $0?.keyID } == ["k-1", "k-3", "k-2"]) }
    }

    /// The number of a deleted key goes to another key.
    @Test func erasingAnAppDeletesItsKeyNumbers() throws {
        let log = try EventLogWriter(path: path)
        defer { log.close() }
        try store("m-1", proof("r", key: "k"), app: "blog", in: log)
        try store("m-1", proof("r", key: "k"), in: log)
        func keys() throws -> [String] {
            try rows("app_id || ' ' || key_id", from: "(SELECT number AS seq, * FROM event_key)")
        }
        #expect(try keys() == ["blog k", "shop k"])
        var (erasure, uses) = (EventErasure(appID: "shop"), KeyUseTally())
        while try !log.erase(&erasure, counting: &uses) {}
        #expect(try keys() == ["blog k"])
        try store("m-2", proof("r", key: "k"), app: "news", in: log)
        try store("m-2", proof("r", key: "k"), in: log)
        #expect(try keys() == ["blog k", "news k", "shop k"])
        for found in try proofs() { #expect(found.map { $0?.keyID } == ["k"]) }
        #expect(try rows("app_id || key_number") == ["blog1", "news2", "shop3"])
    }

    /// Version 13 is the oldest version, version 15 is without claims.
    @Test(arguments: [13, 15])
    func aFileOfAnEarlierVersionIsReadAndMigrated(version: Int) throws {
        do {
            let old = try SQLiteConnection(path: path)
            try old.execute("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL")
            let oldest = EventLogSchema.oldestVersion
            try Schema.migrate(
                old, Array(EventLogSchema.migrations.prefix(version - oldest + 1)), from: oldest)
            try EventLogState.begin(old)
            for number in 1...3 {
                try old.run(
                    """
                    INSERT INTO event (app_id, message_id, type, timestamp_ms, received_ms, body, verdict, key_id,
                        enforcement, dialect, request_id)
                    VALUES ('shop', ?1, 'track', 0, 1, '{}', 'verified', 'k', 'required', 'native', ?2)
                    """, .text("old-\(number)"), .text(number == 3 ? "r" : Self.uuid))
            }
        }
        var expected = [Self.uuid, Self.uuid, "r"].map { proof($0, key: "k") }
        for found in try proofs() { #expect(found == expected) }
        var query = EventQuery(appID: "shop")
        query.claim = ClaimFilter("plan=pro")
        let reader = SQLiteEventLog(readers: SQLiteReaders(path: path), runs: OpenIndexRuns())
        #expect(try reader.follow(query, after: 0, limit: 9).events.isEmpty)
        let consumers = StoredConsumers(
            SQLiteConsumerEngine(reader: reader, writer: .file(path), now: { 0 }))
        #expect(throws: ConsumerFailure.self) { try consumers.all(.pull, of: "shop") }
        let log = try EventLogWriter(path: path)
        expected.append(proof(Self.uuid, key: "k", claims: #"{"plan":"pro"}"#))
        try store("new", expected[3], in: log)
        log.close()
        for found in try proofs() { #expect(found == expected) }
        #expect(try consumers.all(.pull, of: "shop").isEmpty)
        #expect(try reader.follow(query, after: 0, limit: 9).events.map(\.messageID) == ["new"])
        #expect(try rows("claims", from: "stored_event") == ["", "", "", #"{"plan":"pro"}"#])
        #expect(try rows("key_number") == ["", "", "", "1"])
        // The three old events, which were not counted yet, came in two requests.
        #expect(try rows("verified", from: "(SELECT 1 AS seq, verified FROM key_use)") == ["2"])
    }
}
