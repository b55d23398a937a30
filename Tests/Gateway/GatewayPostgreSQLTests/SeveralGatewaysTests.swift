import CountersignCore
import CountersignCrypto
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import GatewayPostgreSQL

extension PostgreSQLTests {
    /// Several gateways on one database in one process, called through their routers.
    @Suite(.timeLimit(.minutes(3)))
    struct SeveralGatewaysTests {
        static let otherKey = Result { try SigningKey.generate(.rs256) }

        /// Gateways with the app `shop`, which requires tokens signed by one of its two keys.
        final class Bench: @unchecked Sendable {
            let storage: any Storage
            let directory: AppDirectory
            private(set) var gateways: [Gateway] = []
            let writeKey: String
            let token: String
            let other: (id: String, token: String)
            let admin: String
            private let address: DatabaseAddress
            private let keyFile: String

            init(_ database: TestDatabase, gateways count: Int) throws {
                var address = try #require(DatabaseAddress(database.url))
                address.tokenKeyFile =
                    FileManager.default.temporaryDirectory.appendingPathComponent(database.name).path
                keyFile = address.tokenKeyFile
                storage = try StorageLocation.database(address).open()
                directory = try storage.openControl(as: .account)
                writeKey = try directory.createApp(id: "shop").writeKey
                let (key, other) = (try SharedKeys.app(), try otherKey.get())
                _ = try directory.addKey(key.publicKey.pem, to: "shop")
                let added = try directory.addKey(other.publicKey.pem, to: "shop")
                try directory.setEnforcement(.required, for: "shop")
                let claims: JSONObject = [
                    "sub": "user-1", "exp": .integer(Int64(Date().timeIntervalSince1970) + 600),
                ]
                token = try key.sign(claims: claims)
                self.other = (added.id, try other.sign(claims: claims))
                admin = try directory.apiTokens.create(name: "test", scopes: ["admin"]).text

                self.address = address
                for _ in 0..<count { try start() }
            }

            /// Starts another gateway.
            func start() throws {
                var configuration = GatewayConfiguration(dataDirectory: "/nowhere")
                configuration.database = address
                configuration.port = 0
                configuration.stopGraceSeconds = 1
                let gateway = try Gateway(configuration: configuration)
                try gateway.startInProcess()
                gateways.append(gateway)
            }

            func stop() {
                for gateway in gateways { gateway.stop() }
                try? FileManager.default.removeItem(atPath: keyFile)
            }

            func ask(
                _ gateway: Int, _ method: String, _ path: String, _ body: String? = nil,
                headers: [String: String] = [:]
            ) throws -> TestAnswer {
                let client = try TestTransport.router.client(of: gateways[gateway])
                return try #require(client.send(method, path, headers, body.map { Array($0.utf8) }))
            }

            /// Sends a request to store an event and returns the status.
            func store(_ gateway: Int, _ id: String, token: String?) throws -> Int {
                var headers = ["X-Write-Key": writeKey]
                headers["Authorization"] = token.map { "Bearer \($0)" }
                return try ask(
                    gateway, "POST", "/v1/batch",
                    #"{"batch":[{"type":"track","event":"e","messageId":"\#(id)","userId":"user-1"}]}"#,
                    headers: headers
                ).status
            }

            /// Creates a write key with an `Idempotency-Key`.
            func make(_ gateway: Int, key: String, _ body: String = "{}") throws -> TestAnswer {
                try ask(
                    gateway, "POST", "/admin/api/apps/shop/write-keys", body,
                    headers: [
                        "Authorization": "Bearer \(admin)", "Content-Type": "application/json",
                        "Idempotency-Key": key,
                    ])
            }

            /// The value of a metric. `name` omits the prefix `countersign_` and includes the labels.
            func metric(_ gateway: Int, _ name: String) throws -> Double? {
                let text = try ask(gateway, "GET", "/metrics").body
                let line = text.split(separator: "\n").first { $0.hasPrefix("countersign_\(name) ") }
                return line.flatMap { Double($0.split(separator: " ").last ?? "") }
            }

            /// Sends a conditional change to a gateway's admin API and returns the status.
            func change(_ gateway: Int, _ method: String, _ path: String, _ body: String? = nil) throws -> Int
            {
                var headers = ["Authorization": "Bearer \(admin)", "Content-Type": "application/json"]
                let get = try ask(gateway, "GET", "/admin/api/" + path, headers: headers)
                headers["If-Match"] = get.headers["etag"]
                return try ask(gateway, method, "/admin/api/" + path, body, headers: headers).status
            }
        }

        func use(_ count: Int, _ body: (Bench, TestDatabase) throws -> Void) throws {
            try TestDatabase.use { database in
                let bench = try Bench(database, gateways: count)
                defer { bench.stop() }
                try body(bench, database)
            }
        }

        @Test func aDeletedKeyIsRejectedByAllGatewaysOnceTheDeletionIsAnswered() throws {
            try use(3) { bench, _ in
                for round in 0..<5 {
                    if round > 0 {
                        _ = try bench.directory.addKey(try Self.otherKey.get().publicKey.pem, to: "shop")
                        bench.storage.cluster?.waitForGateways()
                    }
                    for gateway in 0..<3 {
                        #expect(
                            try bench.store(gateway, "\(round)-\(gateway)", token: bench.other.token) == 200)
                    }
                    #expect(try bench.change(round % 3, "DELETE", "apps/shop/keys/\(bench.other.id)") == 204)
                    for gateway in 0..<3 {
                        #expect(
                            try bench.store(gateway, "x-\(round)-\(gateway)", token: bench.other.token) == 401
                        )
                        #expect(try bench.store(gateway, "y-\(round)-\(gateway)", token: bench.token) == 200)
                    }
                }
            }
        }

        @Test func aSwitchOfEnforcementReachesAllGateways() throws {
            try use(3) { bench, _ in
                let before = try (0..<3).map { try bench.store($0, "a\($0)", token: nil) }
                #expect(before == [401, 401, 401])
                let changed = try bench.change(1, "PUT", "apps/shop/enforcement", #"{"state":"disabled"}"#)
                #expect(changed == 200)
                let after = try (0..<3).map { try bench.store($0, "b\($0)", token: nil) }
                #expect(after == [200, 200, 200])
            }
        }

        @Test func aCutOffGatewayRejectsRequestsUntilItReconnects() throws {
            try use(1) { bench, database in
                #expect(try bench.store(0, "a", token: bench.token) == 200)
                #expect(try bench.ask(0, "GET", "/readyz").status == 200)
                let lost = #"database_errors_total{class="08"}"#
                #expect(try bench.metric(0, lost) == nil)
                try database.cutOff()
                // Without the database, the gateway cannot store events, and its keys may be out of date.
                while try bench.ask(0, "GET", "/readyz").body != Self.cutOff {}
                let rejected = try bench.ask(
                    0, "POST", "/v1/batch", #"{"batch":[]}"#,
                    headers: ["X-Write-Key": bench.writeKey, "Authorization": "Bearer \(bench.token)"])
                #expect(rejected.status == 503)
                #expect(rejected.headers["retry-after"] != nil)
                #expect(try #require(try bench.metric(0, "cluster_heartbeat_age_seconds")) >= 5)
                #expect(try #require(try bench.metric(0, lost)) >= 1)
                #expect(try bench.ask(0, "GET", "/livez").status == 200)
                try database.letIn()
                while try bench.ask(0, "GET", "/readyz").status != 200 {}
                #expect(try bench.store(0, "b", token: bench.token) == 200)
            }
        }

        @Test func idempotencyKeysCountAtAllGatewaysAndAfterARestart() throws {
            try use(2) { bench, database in
                let first = try bench.make(0, key: "a")
                #expect(first.status == 201)
                let secret = try #require(first.json["write_key"] as? String)
                let again = try bench.make(1, key: "a")
                #expect(again.status == 201 && again.headers["idempotency-replayed"] == "true")
                #expect(again.json["write_key"] as? String == secret)
                #expect(again.headers["etag"] == first.headers["etag"])
                #expect(again.headers["content-type"] == first.headers["content-type"])
                #expect(try bench.make(1, key: "a", #"{"description":"x"}"#).status == 422)
                for gateway in bench.gateways { gateway.stop() }
                try bench.start()
                let later = try bench.make(2, key: "a")
                #expect(later.json["write_key"] as? String == secret)
                // The app's first key and the new one.
                #expect(try bench.directory.writeKeys(of: "shop").count == 2)
                // The secret must not be readable in the database.
                let notes = try database.connect().all("SELECT body FROM cluster_note WHERE kind = 'answers'")
                {
                    $0.text(0)
                }
                #expect(notes.count == 1)
                // A note may contain the response body as base64url.
                let parts = notes.flatMap { note in
                    note.split { !($0.isLetter || $0.isNumber || "-_".contains($0)) }.map { String($0) }
                }
                let shown = parts + parts.map { String(decoding: Base64URL.decode($0) ?? [], as: UTF8.self) }
                #expect(!shown.contains { $0.contains(secret) })
            }
        }

        @Test func aRejectedRequestDoesNotUseUpItsIdempotencyKey() throws {
            try use(2) { bench, _ in
                let rejected = try bench.make(0, key: "a", #"{"description":1}"#)
                let made = try bench.make(1, key: "a")
                #expect(rejected.status == 422 && made.status == 201)
            }
        }

        @Test func concurrentEqualRequestsAtTwoGatewaysAreDoneOnce() throws {
            try use(2) { bench, _ in
                for round in 1...10 {
                    let answers = Lock<[TestAnswer]>([])
                    DispatchQueue.concurrentPerform(iterations: 2) { gateway in
                        if let answer = try? bench.make(gateway, key: "\(round)") {
                            answers.withLock { $0.append(answer) }
                        }
                    }
                    let made = answers.withLock { $0 }
                    #expect(made.count == 2)
                    #expect(
                        made.filter { $0.status == 201 && $0.headers["idempotency-replayed"] == nil }.count
                            == 1)
                    // A concurrent request gets the same response or a conflict.
                    #expect(
                        made.allSatisfy {
                            $0.status == 201 || $0.json["code"] as? String == "idempotency_key_in_use"
                        })
                    let keys = try bench.directory.writeKeys(of: "shop")
                    #expect(keys.count == 1 + round)
                }
            }
        }

        private static let cutOff = "not ready: cut off from the database, nothing is accepted\n"

        @Test func theAdminAPIListsTheGateways() throws {
            try use(2) { bench, _ in
                let answer = try bench.ask(
                    0, "GET", "/admin/api/cluster", headers: ["Authorization": "Bearer \(bench.admin)"])
                #expect(answer.status == 200)
                let gateways = try #require(answer.json["gateways"] as? [[String: Any]])
                #expect(gateways.count == 2)
                #expect(gateways.allSatisfy { $0["live"] as? Bool == true })
                #expect(gateways.allSatisfy { $0["version"] as? String == countersignVersion })
                #expect(gateways.allSatisfy { $0["reader_lag_ms"] as? Int != nil })
                let partitions = try #require(answer.json["partitions"] as? [[String: Any]])
                let today = Int(Date().timeIntervalSince1970) / 86_400 * 86_400_000
                let day = try #require(partitions.first { $0["day_ms"] as? Int == today })
                #expect(day["name"] as? String == "event_\(today / 86_400_000)")
                #expect(day.keys.contains("rows"))
                #expect(
                    partitions.filter { $0["day_ms"] is NSNull }.map { $0["name"] as? String } == [
                        "event_default"
                    ])
                #expect(answer.json["schema_version"] as? Int == PostgreSQLSchema.newest)
            }
        }

        @Test func metricsDescribeTheClusterAndTheDatabase() throws {
            try use(2) { bench, _ in
                // The last heartbeat of the first gateway may precede the start of the second one.
                while try bench.metric(0, "cluster_gateways") != 2 {}
                #expect(try bench.metric(1, "cluster_gateways") == 2)
                #expect(try (0..<5).contains(#require(try bench.metric(0, "cluster_heartbeat_age_seconds"))))
                #expect(try abs(#require(try bench.metric(0, "cluster_clock_offset_seconds"))) < 1)
                #expect(try bench.metric(0, "cluster_reader_lag_seconds") != nil)
                #expect(try bench.metric(0, "database_connection_limit") == 16)
                #expect(try #require(try bench.metric(0, #"database_connections{state="idle"}"#)) > 0)
                // Background work such as the heartbeat uses a connection for a moment.
                while try bench.metric(0, #"database_connections{state="in_use"}"#) != 0 {}
                #expect(try bench.metric(0, "database_write_retries_total") == 0)
                #expect(try #require(try bench.metric(0, "database_event_partitions")) >= 4)
            }
        }
    }
}
