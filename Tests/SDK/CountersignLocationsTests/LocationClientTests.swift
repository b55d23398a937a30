import CountersignCore
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import CountersignDelivery
@testable import CountersignLocations
@testable import CountersignTransport

@Suite(.closing, .timeLimit(.minutes(5)))
struct LocationClientTests {
    private let bench = LocationBench()

    private let here = Location(
        latitude: 46.05, longitude: 14.51, timestamp: Date(timeIntervalSince1970: 1_430_800_314.123))

    @Test(arguments: ["Bearer ", ""])
    func aRejectedTokenIsRefreshedAndTheRecordArrivesOnce(prefix: String) async throws {
        bench.response.withLock { $0 = { $0.token == prefix + "A0" ? .json(401, "") : nil } }
        let client = try bench.make { $0.authorization.strategy = prefix.isEmpty ? .sas : .jwt }
        let uuid = try await client.record(here)
        #expect(try await client.count() == 1)
        let delivered = try await client.sync()
        await client.callbacksDelivered()
        #expect(delivered.count == 1)
        #expect(bench.stored.withLock { $0 } == [uuid])
        #expect(bench.uploads.withLock { $0.map(\.token) } == [prefix + "A0", prefix + "A1"])
        #expect(bench.http.withLock { $0.map(\.status) } == [401, 200], "the app sees the rejection too")
        #expect(bench.authorization.withLock { $0.map(\.isSuccess) } == [true])
        #expect(bench.authorization.withLock { $0.first?.response["access_token"] } == "A1")
        #expect(bench.locations.withLock { $0 } == [uuid])
        #expect(try await client.count() == 0)
        #expect(try await client.sync().isEmpty)
    }

    @Test(
        arguments: [
            ("2026-11-21T08:30:00+0100", "2026-11-21T07:30:00.000Z", false),
            ("2026-11-21T08:30:00+01", "2026-11-21T07:30:00.000Z", false),
            ("2026-11-21T08:30Z", "2026-11-21T08:30:00.000Z", false),
            (1_763_714_700_007, "2025-11-21T08:45:00.007Z", false),
            ("2026-11-21T08:30:00", "2026-11-21T08:30:00", true),
            ("2026-02-30T08:30:00Z", "2026-02-30T08:30:00Z", true),
            ("2026-11-21T25:30:00Z", "2026-11-21T25:30:00Z", true), ("", "", true), (1e300, 1e300, true),
            (true, true, true), (.number(.nan), nil, true), (.number(-.infinity), nil, true),
        ] as [(JSONValue, JSONValue, Bool)])
    func aTimestampIsConvertedIfItIsADateAndElseSentUnchanged(given: JSONValue, sent: JSONValue, warns: Bool)
        async throws
    {
        let warnings = Lock<[String]>([])
        for format in [LocationConfiguration.Persistence.TimestampFormat.iso, .epoch] {
            let client = try bench.make {
                $0.persistence.timestampFormat = format
                $0.log = CountersignLog(isEnabled: { $0 == .warning }) { _, message, _ in
                    if message.contains("timestamp") { warnings.withLock { $0.append(message) } }
                }
            }
            try await client.insert(["coords": ["latitude": 1, "longitude": 2], "timestamp": given])
            let record = try #require(try await client.records().first)
            let isInstant = format == .epoch && !warns
            let expected = isInstant ? .integer(RFC3339.milliseconds(sent.string ?? "") ?? 0) : sent
            #expect(record["timestamp"] == expected)
            try await client.removeAll()
            await client.close()
        }
        #expect(warnings.withLock { $0.count } == (warns ? 2 : 0))
    }

    /// A timestamp out of range is sent as a number, NaN as null. The present, 1970 or the year 9999 would be wrong.
    @Test(
        arguments: [(Double.nan, nil), (-1e12, -1_000_000_000_000_000), (1e12, 1_000_000_000_000_000)]
            as [(Double, JSONValue)])
    func aTimestampOutsideTheDateRangeIsReplacedWithAWarning(seconds: Double, sent: JSONValue) async throws {
        let client = try bench.make()
        try await client.record(
            Location(latitude: 1, longitude: 2, timestamp: Date(timeIntervalSince1970: seconds)))
        #expect(try await client.records().first?["timestamp"] == sent)
        #expect(bench.lines.withLock { $0.count { $0.contains("timestamp is not a date") } } == 1)
    }

    @Test func deepRecordsAndParametersAreCutToTheGatewaysDepthLimit() async throws {
        let deep = (0..<20_000).reduce(JSONValue.integer(1)) { inner, _ in [inner] }
        for batchSync in [true, false] {
            for root in ["location", "."] {
                let client = try bench.make {
                    $0.http.batchSync = batchSync
                    $0.http.rootProperty = root
                    $0.http.params = ["deep": deep]
                    $0.persistence.extras = ["deep": deep]
                }
                try await client.insert(["coords": ["latitude": 1, "longitude": 2], "other": deep])
                try await client.sync()
                let body = try #require(bench.uploads.withLock { $0.last }).request.body
                #expect((51...64).contains(depth(of: body)))
                await client.close()
            }
        }
    }

    @Test func bodyIsByteForByteAsExpected() async throws {
        let client = try bench.make {
            $0.http.params = ["device": "d", "n": 1]
            $0.http.headers = ["X-App": "a", "authorization": "mine"]
            $0.persistence.extras = ["route": 7]
        }
        var location = here
        location.event = "motionchange"
        let uuid = try await client.record(location)
        try await client.sync()
        let request = bench.uploads.withLock { $0[0].request }
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == #"{"location":{"activity":{"confidence":0,"type":"unknown"},"battery":{"is_charging":false,"level":-1},"#
                + #""coords":{"accuracy":-1.0,"altitude":-1.0,"altitude_accuracy":-1.0,"heading":-1.0,"latitude":46.05,"#
                + #""longitude":14.51,"speed":-1.0},"event":"motionchange","extras":{"context":{"library":{"name":"countersign-swift","version":"0.1.0"}},"route":7},"is_moving":false,"odometer":0.0,"#
                + #""timestamp":"2015-05-05T04:31:54.123Z","uuid":"\#(uuid)"},"device":"d","n":1}"#)
        #expect(
            request.headers.map { "\($0.name): \($0.value)" } == [
                "Content-Type: application/json", "User-Agent: countersign-swift/\(SDKVersion.current)",
                "X-App: a", "Authorization: Bearer A0",
            ])
        #expect(
            request.description
                == "POST https://app.your.server.com/users/locations (\(request.body.count) bytes)")
    }

    @Test(arguments: [
        (false, "location", #"{"location":{"u":1},"p":2}"#),
        (true, "location", #"{"location":[{"u":1}],"p":2}"#),
        (false, "data", #"{"data":{"u":1},"p":2}"#), (false, ".", #"{"p":2,"u":1}"#),
        (true, ".", #"[{"u":1}]"#),
    ])
    func bodiesHaveTheDocumentedShapes(batch: Bool, root: String, body: String) {
        var http = LocationConfiguration.HTTP()
        http.url = "https://a/"
        http.batchSync = batch
        http.rootProperty = root
        http.method = "put"
        http.params = ["p": 2]
        let destination = LocationDestination(settings: .init(http: http, refreshStatuses: []))
        let request = destination.request(
            for: [QueuedEvent(sequence: 1, messageID: "m", userID: nil, body: Array(#"{"u":1}"#.utf8))],
            attempt: 1, deviceID: "", now: Date())
        #expect(String(decoding: request.body, as: UTF8.self) == body)
        #expect(request.method == "PUT")
    }

    @Test func aLocationTemplateDefinesTheRecord() async throws {
        let client = try bench.make {
            $0.persistence.locationTemplate =
                #"{"lat":<%= latitude %>,"lng":<%=longitude%>,"event":"<%= event %>","ts":<%= timestamp %>,"id":"<%= uuid %>","none":<%= mock %>}"#
            $0.persistence.timestampFormat = .epoch
            $0.persistence.extras = ["k": "v"]
        }
        var location = here
        location.event = "say \"hi\"\n"
        let uuid = try await client.record(location)
        #expect(
            try await client.records() == [
                [
                    "lat": 46.05, "lng": 14.51, "event": "say \"hi\"\n", "ts": 1_430_800_314_123,
                    "id": .string(uuid), "none": nil, "k": "v",
                ]
            ])
        try await client.update { $0.persistence.locationTemplate = "[<%= latitude %>, <%= longitude %>]" }
        try await client.record(here)
        #expect(try await client.records().last == [46.05, 14.51, ["k": "v"]])
        // With an invalid template the whole record is kept.
        try await client.update { $0.persistence.locationTemplate = "{<%= latitude }" }
        try await client.record(here)
        guard case .object(let record) = try await client.records().last else {
            Issue.record("no record")
            return
        }
        #expect(record["coords"] != nil)
        #expect(bench.lines.withLock { $0.contains { $0.contains("locationTemplate error") } })
    }

    @Test func insertAddsMissingMembersAndRejectsInvalidRecords() async throws {
        let client = try bench.make()
        let uuid = try await client.insert(["coords": ["latitude": 1, "longitude": 2.5], "uuid": "mine"])
        #expect(uuid == "mine")
        #expect(
            try await client.records() == [
                [
                    "coords": ["latitude": 1, "longitude": 2.5], "uuid": "mine",
                    "timestamp": "2025-06-15T15:06:40.000Z",
                    "extras": [
                        "context": ["library": ["name": "countersign-swift", "version": "0.1.0"]]
                    ],
                ]
            ])
        for bad: JSONObject in [
            [:], ["coords": ["latitude": 1]], ["coords": ["latitude": "1", "longitude": 1]],
            ["coords": ["latitude": 91, "longitude": 0]], ["coords": ["latitude": 0, "longitude": -180.1]],
            ["coords": 7],
        ] {
            #expect(await code { _ = try await client.insert(bad) } == .invalidLocation)
        }
        #expect(try await client.count() == 1)
        #expect(try await client.remove(uuid: "other") == false)
        #expect(try await client.remove(uuid: "mine"))
        #expect(try await client.count() == 0)
        try await client.record(here)
        try await client.removeAll()
        #expect(try await client.count() == 0)
    }

    /// A record may still be queued without an error, because it was recorded during the sync.
    @Test func theErrorOfASyncFollowsItsFlushResult() {
        func batch(_ outcome: FlushResult.Outcome, _ code: String = "") -> FlushResult.Batch {
            FlushResult.Batch(userID: nil, eventCount: 1, deliveredCount: 0, outcome: outcome, code: code)
        }
        func code(_ batches: [FlushResult.Batch], _ ending: FlushResult.Ending, _ queued: Int)
            -> CountersignError.Code?
        {
            LocationClient.error(of: FlushResult(batches: batches, ending: ending, queued: queued))?.code
        }
        let (delivered, rejected) = (batch(.delivered), batch(.tokenProblem, "EXPIRED"))
        #expect(code([], .drained, 1) == nil)
        #expect(code([], .parked, 1) == .notAuthorized)
        #expect(code([], .closed, 0) == .closed)
        #expect(code([rejected, delivered], .drained, 1) == nil)
        #expect(code([delivered, rejected], .drained, 1) == .notAuthorized)
        #expect(code([delivered, batch(.quarantined, "http_422")], .drained, 0) == .response)
        #expect(code([batch(.quarantined, "http_422"), delivered], .drained, 0) == .response)
        #expect(code([delivered], .interrupted, 0) == .response)
        #expect(code([delivered, batch(.retryLater, "timed_out")], .interrupted, 1) == .networkConnection)
    }

    /// Captive portals return their login page with any status.
    @Test func anHTMLPageIsNotADelivery() async throws {
        let page = "<!DOCTYPE html><html><body>Welcome</body></html>"
        for answer in [
            TransportResponse.json(200, page), .json(201, "  \n<html/>"),
            .json(
                200, "\u{FEFF}<!-- portal --> <?xml version=\"1.0\"?>\n<!DocType HTML PUBLIC \"-//W3C//DTD\">"
            ),
            .json(200, "<META http-equiv=refresh content='0; url=https://login.example/'>"),
            .json(200, "<link rel=stylesheet href=portal.css><form action='https://login.example/'>"),
            .json(200, "<style>form{margin:0}</style><form>"), .json(200, "<noscript>JavaScript?</noscript>"),
            .json(200, "<script>location = 'https://login.example/'</script>"),
            TransportResponse(status: 200, body: Array("<html>".utf16).flatMap { [UInt8($0), 0] }),
        ] {
            let bench = LocationBench()
            bench.response.withLock { $0 = { _ in answer } }
            let client = try bench.make()
            for _ in 0..<6 { try await client.record(here) }
            await #expect(throws: CountersignError.self) { try await client.sync() }
            #expect(try await client.count() == 6)
            await client.callbacksDelivered()
            #expect(bench.http.withLock { $0 }.map(\.isSuccess) == [false])
            bench.response.withLock { $0 = nil }
            #expect(try await client.sync().count == 6)
            await client.close()
        }
    }

    /// The content type alone does not mark a login page, because `text/html` is the default of PHP and Express.
    @Test(arguments: [
        "OK", #"{"success":true}"#, "", " \n", "<ok/>", "<?xml version=\"1.0\"?><response>ok</response>",
        "<p>OK</p>",
        "<!DOCTYPE note><note/>", "<!-- ok -->", "<", "<!", "<!-- html",
    ])
    func a2xxAnswerThatIsNotAnHTMLPageIsADelivery(body: String) async throws {
        let answer = TransportResponse.json(
            200, body, headers: [("Content-Type", "text/html; charset=utf-8")])
        bench.response.withLock { $0 = { _ in answer } }
        let client = try bench.make()
        try await client.record(here)
        #expect(try await client.sync().count == 1)
        await client.callbacksDelivered()
        #expect(bench.http.withLock { $0 }.map(\.isSuccess) == [true])
    }

    @Test func anHTMLPageIsADeliveryIfConfigured() async throws {
        bench.response.withLock { $0 = { _ in .json(200, "<!DOCTYPE html><p>Thank you</p>") } }
        let client = try bench.make { $0.http.acceptsPages = true }
        try await client.record(here)
        #expect(try await client.sync().count == 1)
    }

    @Test func aRejectedRecordIsListedRequeuedAndDeleted() async throws {
        let client = try bench.make()
        let bad = try await client.record(here)
        bench.response.withLock { response in
            response = { upload in "\(upload.body)".contains(bad) ? .json(422, "{}") : nil }
        }
        try await client.record(here)
        _ = try? await client.sync()
        #expect(try await client.quarantinedRecords().map(\.messageID) == [bad])
        #expect(try await client.requeueQuarantinedRecords() == 1)
        #expect(try await client.count() == 1)
        _ = try? await client.sync()
        try await client.record(here)
        _ = try? await client.sync()
        #expect(try await client.deleteQuarantinedRecords() == 1)
        #expect(try await client.quarantinedRecords().isEmpty)
        #expect(try await client.count() == 0)
    }

    @Test func recordLimitsKeepTheNewestRecords() async throws {
        let client = try bench.make {
            $0.persistence.maxRecordsToPersist = 3
            $0.persistence.maxDaysToPersist = 2
        }
        var uuids: [String] = []
        for _ in 0..<5 { uuids.append(try await client.record(here)) }
        try await client.sync()
        #expect(bench.stored.withLock { $0 } == Array(uuids.suffix(3)))
        try await client.record(here)
        bench.clock.advance(by: 2 * 86_400 + 1)
        let fresh = try await client.record(here)
        try await client.sync()
        #expect(bench.stored.withLock { $0.last } == fresh)
        #expect(await client.snapshot().evictedByAge == 1)
        #expect(await client.snapshot().evictedByCount == 2)
        await client.close()
        let none = try LocationBench().make { $0.persistence.maxRecordsToPersist = 0 }
        #expect(await code { _ = try await none.record(here) } == .notPersisted)
        await none.close()
    }

    @Test func autoSyncSendsAtItsThreshold() async throws {
        let client = try bench.make {
            $0.http.autoSync = true
            $0.http.autoSyncThreshold = 3
            $0.http.batchSync = true
        }
        // At its start a client sends all queued records, even below the threshold. Waits for the end of that sync.
        try await client.sync()
        for _ in 0..<3 { try await client.record(here) }
        await bench.transport.waitForRequests(1)
        // Waits until the result of the upload is on disk.
        try await client.sync()
        #expect(try await client.count() == 0)
        #expect(bench.uploads.withLock { $0.map(\.uuids.count) } == [3])
        var moved = here
        moved.event = "motionchange"
        try await client.record(moved)
        await bench.transport.waitForRequests(2)
        try await client.sync()
        #expect(try await client.count() == 0)
        #expect(bench.uploads.withLock { $0.map(\.uuids.count) } == [3, 1])
    }

    // MARK: Response statuses

    @Test(arguments: [
        (401, "", true), (401, #"Bearer error="invalid_token""#, true),
        (403, #"Bearer error="insufficient_scope""#, false),
        (401, #"Bearer error="insufficient_scope""#, false), (401, #"DPoP error="use_dpop_nonce""#, false),
        (403, "", false), (419, "", false), (498, "", false), (500, "", false),
    ])
    func onlyARejectedTokenCausesARefresh(status: Int, challenge: String, refreshes: Bool) async throws {
        bench.response.withLock {
            $0 = {
                $0.token == "Bearer A0" ? .json(status, "", headers: [("WWW-Authenticate", challenge)]) : nil
            }
        }
        let client = try bench.make()
        try await client.record(here)
        _ = try? await client.sync()
        #expect(bench.refreshes == (refreshes ? 1 : 0))
        #expect(try await client.count() == (refreshes ? 0 : 1))
    }

    @Test(arguments: [403, 419, 498])
    func configuredStatusesCauseARefresh(status: Int) async throws {
        bench.response.withLock {
            $0 = { $0.token == "Bearer A0" ? .json(status, #"{"status":401,"error":"Wrong JWT"}"#) : nil }
        }
        let client = try bench.make { $0.authorization.refreshStatuses = [403, 419, 498] }
        try await client.record(here)
        try await client.sync()
        #expect(bench.refreshes == 1)
    }

    @Test func aRecordIsDeletedOnlyAfterA2xxResponse() async throws {
        for status in [301, 302, 400, 403, 404, 410, 429, 500, 503] {
            bench.response.withLock { $0 = { _ in .json(status, "") } }
            let client = try bench.make { $0.instanceName = "s\(status)" }
            let uuid = try await client.record(here)
            let error = await #expect(throws: CountersignError.self, "\(status)") { try await client.sync() }
            if [301, 302].contains(status) { #expect(error?.code == .redirect) }
            let waiting = try await client.count()
            let aside = await client.snapshot().quarantined
            #expect(waiting + aside == 1, "\(status)")
            bench.response.withLock { $0 = nil }
            if waiting == 1 {
                try await client.sync()
                #expect(bench.stored.withLock { $0.last } == uuid)
            }
            await client.close()
        }
    }

    @Test func withoutAServerRecordsWait() async throws {
        let client = try bench.make {
            $0.http.url = ""
            $0.http.autoSync = true
        }
        let uuid = try await client.record(here)
        #expect(await code { _ = try await client.sync() } == .invalidURL)
        #expect(bench.transport.requests.isEmpty)
        try await client.update { $0.http.url = "https://app.your.server.com/users/locations" }
        try await client.sync()
        #expect(bench.stored.withLock { $0 } == [uuid])
    }

    @Test func aFailedConnectionIsReported() async throws {
        bench.transport.setHandler { _ in throw HTTPTransportError(.cannotConnect, "refused") }
        let client = try bench.make()
        try await client.record(here)
        #expect(await code { _ = try await client.sync() } == .networkConnection)
        await client.callbacksDelivered()
        #expect(bench.http.withLock { $0.map(\.status) } == [0])
    }

    @Test func configurationsThatCannotWorkAreRejected() async throws {
        let changes: [(inout LocationConfiguration) -> Void] = [
            { $0.http.url = "ftp://a" }, { $0.http.method = "GET\r\nX: y" },
            { $0.http.headers = ["X": "a\nb"] },
            { $0.authorization.refreshHeaders = ["X Y": "a"] }, { $0.authorization.accessToken = "a\r\nb" },
            { $0.http.timeout = 0 },
        ]
        for change in changes {
            let error = #expect(throws: CountersignError.self) { try bench.make(change) }
            #expect(error?.code == .invalidConfiguration)
        }
    }

    @Test(arguments: ["blocks", "asks for a token", "syncs", "configures"])
    func aSlowOrReentrantCallbackDelaysNothing(habit: String) async throws {
        bench.response.withLock { $0 = { $0.token == "Bearer A0" ? .json(401, "") : nil } }
        let end = Handshake()
        let client = Lock<LocationClient?>(nil)
        let handler: @Sendable () -> Void = {
            let client = client.withLock { $0 }
            switch habit {
            case "blocks": end.block()
            case "asks for a token": Task { try await client?.accessToken(replacing: "A0") }
            case "syncs": Task { try await client?.sync() }
            default: Task { try await client?.update { $0.http.params = ["a": 1] } }
            }
        }
        let made = try bench.make {
            $0.onAuthorization = { _ in handler() }
            $0.onHTTP = { _ in handler() }
            $0.onLocation = { _ in handler() }
        }
        client.withLock { $0 = made }
        let uuid = try await made.record(here)
        _ = try? await made.sync()
        #expect(bench.stored.withLock { $0.first } == uuid)
        #expect(bench.refreshes == 1)
        end.signal()
        await made.callbacksDelivered()
        client.withLock { $0 = nil }
    }

    @Test func onlyTheTokenStoreContainsTokens() async throws {
        let secrets = ["secret-access-0", "secret-refresh-0", "secret-access-1", "secret-refresh-1"]
        bench.response.withLock {
            $0 = { $0.token == "Bearer secret-access-1" ? nil : .json(401, "secret-access-0") }
        }
        bench.tokens.override { _ in
            .json(200, #"{"access_token":"secret-access-1","refresh_token":"secret-refresh-1"}"#)
        }
        let client = try bench.make {
            $0.authorization.accessToken = secrets[0]
            $0.authorization.refreshToken = secrets[1]
        }
        try await client.record(here)
        try await client.sync()
        try await client.record(here)
        await client.callbacksDelivered()
        var text = bench.lines.withLock { $0.joined() }
        for event in bench.authorization.withLock({ $0 }) { text += "\(event)" }
        text += "\(await client.snapshot()) \(await client.authorizationState)"
        for request in bench.transport.requests { text += "\(request)" }
        await client.close()
        for secret in secrets { #expect(text.contains(secret) == false) }

        let files = try #require(FileManager.default.enumerator(atPath: bench.directory.path))
        var holders: Set<String> = []
        for case let name as String in files {
            let path = bench.directory.appendingPathComponent(name).path
            guard let data = FileManager.default.contents(atPath: path) else { continue }
            for secret in secrets where data.range(of: Data(secret.utf8)) != nil {
                holders.insert((name as NSString).lastPathComponent)
            }
        }
        #if os(Linux)
            #expect(holders == ["tokens.json"])
        #else
            #expect(holders.isEmpty)
        #endif
    }

    // MARK: Tokens for the app

    @Test func theAppAndTheSDKShareOneRefresh() async throws {
        bench.response.withLock { $0 = { $0.token == "Bearer A0" ? .json(401, "") : nil } }
        let client = try bench.make()
        #expect(try await client.accessToken() == "A0")
        try await client.record(here)
        async let synced = client.sync()
        async let token = client.accessToken(replacing: "A0")
        #expect(try await token == "A1")
        #expect(try await synced.count == 1)
        #expect(try await client.accessToken(replacing: "A0") == "A1")
        #expect(bench.refreshes == 1)
        await client.forgetTokens()
        await #expect(throws: CountersignError.self) { try await client.accessToken() }
        await client.close()
        let next = try bench.make(keepsTokens: true) {
            $0.authorization.accessToken = nil; $0.authorization.refreshToken = nil
        }
        let error = await #expect(throws: CountersignError.self) {
            try await next.accessToken(replacing: "A0")
        }
        #expect(error?.detail == "the app has set no access token")
    }

    // MARK: Commands from the server

    @Test func allowedServerCommandsAreExecuted() async throws {
        bench.response.withLock {
            $0 = { _ in
                .json(
                    410,
                    #"{"background_geolocation":[["setConfig",{"http":{"batchSync":true},"maxBatchSize":7}],["ban","x"],["stop"],17]}"#
                )
            }
        }
        let client = try bench.make()
        try await client.record(here)
        _ = try? await client.sync()
        #expect(client.configuration.http.batchSync)
        #expect(client.configuration.http.maxBatchSize == 7)
        #expect(bench.lines.withLock { $0.contains { $0.contains("ban") } })
    }

    @Test(arguments: [
        #"["setConfig",{"url":"https://evil.example","autoSync":true}]"#,
        #"[["setConfig",{"http":{"url":"https://evil.example"},"autoSync":true}]]"#,
        #"[["setConfig",{"authorization":{"refreshUrl":"https://evil.example"},"autoSync":true}]]"#,
        #"[["setConfig",{"accessToken":"x","autoSync":true}]]"#,
        #"[["setConfig",{"headers":{"a":"b"},"autoSync":true}]]"#,
        #"[["setConfig",{"params":{"a":"b"},"autoSync":true}]]"#, #"[["setConfig",{"autoSync":"yes"}]]"#,
        #"[["uploadLog","https://evil.example"],["destroyLocations"]]"#, #"["setConfig"]"#, "7", #"[[]]"#,
        #"[[7]]"#,
        #"{"a":1}"#,
    ])
    func serverCommandsDoNotChangeURLsOrCredentials(command: String) async throws {
        bench.response.withLock { $0 = { _ in .json(200, #"{"background_geolocation":\#(command)}"#) } }
        let client = try bench.make()
        try await client.record(here)
        try await client.sync()
        #expect(client.configuration.http == bench.configuration.http)
        #expect(client.configuration.authorization == bench.configuration.authorization)
    }

    @Test func stopEndsARecording() async throws {
        let isRecorded = Handshake()
        let client = try bench.make { $0.onLocation = { _ in isRecorded.signal() } }
        let (stream, continuation) = AsyncStream<Location>.makeStream()
        async let count = client.record(contentsOf: stream)
        // The first location cannot be stored, so it does not count.
        continuation.yield(Location(latitude: 95, longitude: 0, timestamp: here.timestamp))
        continuation.yield(here)
        await isRecorded.wait()
        client.stop()
        continuation.yield(here)
        #expect(try await count == 1)
    }

    @Test func aTokenBeingStoredDoesNotReplaceANewerToken() async throws {
        let held = ["first", "second"].map { (text: $0, begins: Handshake(), ends: Handshake()) }
        let store = HookedTokenStore(FileTokenStore(directory: bench.directory)) {
            $0.willStore = { token in
                for (text, begins, ends) in held where token.contains(text) {
                    begins.signal()
                    ends.block()
                }
            }
        }
        let client = try bench.make {
            $0.tokenStore = store
            $0.authorization.refreshToken = nil
        }
        _ = await client.authorizationState
        try client.change { $0.authorization.accessToken = "first" }
        await held[0].begins.wait()
        try client.change { $0.authorization.accessToken = "second" }
        held[0].ends.signal()
        // The first token is in use now.
        await held[1].begins.wait()
        #expect(client.configuration.authorization.accessToken == "second")
        // A change of another setting hands over the newest token too.
        try client.change { $0.http.timeout = 5 }
        held[1].ends.signal()
        #expect(try await client.accessToken() == "second")
        #expect(client.configuration.authorization.accessToken == "second")
    }

    @Test func theConfigurationKeepsTheNewestPairWhenTheAppSetsAnOldOne() async throws {
        let client = try bench.make()
        #expect(try await client.accessToken(replacing: "A0") == "A1")
        try await client.update {
            $0.authorization.accessToken = "A0"
            $0.authorization.refreshToken = "R0"
        }
        #expect(client.configuration.authorization.accessToken == "A1")
        #expect(client.configuration.authorization.refreshToken == "R1")
    }

    @Test func aTrackInAGPXFileIsRecorded() async throws {
        let client = try bench.make {
            $0.http.batchSync = true
            $0.http.maxBatchSize = 2
        }
        let file = #"""
            <gpx><trk><trkseg><trkpt lat="46.5" lon="13.7"><ele>1600</ele><time>2010-10-03T13:15:19Z</time></trkpt>
            <trkpt lat="95" lon="13.7"></trkpt><trkpt lat="46" lon="13"><time>2010-10-03T15:15:20+0200</time></trkpt><trkpt lat="46.6" lon="13.8"/><trkpt lat="46.7" lon="13.9"></trkpt>
            """#
        let count = try await client.record(contentsOf: LocationClient.locations(inGPX: Data(file.utf8)))
        #expect(count == 4)
        let records = try await client.sync()
        #expect(records.count == 4)
        #expect(records.first?["timestamp"] == "2010-10-03T13:15:19.000Z")
        #expect(records.dropFirst().first?["timestamp"] == "2010-10-03T13:15:20.000Z")
    }
}
