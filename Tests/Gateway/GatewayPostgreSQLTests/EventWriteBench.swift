import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import GatewayPostgreSQL

#if canImport(Glibc)
    import Glibc
#endif

/// Prints the processor time of storing an event, for the gateway and for the server. Needs a release build
/// and `COUNTERSIGN_BENCH=1`. Run with `scripts/postgresql.sh run`, without `--fast`.
extension PostgreSQLTests {
    @Suite(.enabled(if: ProcessInfo.processInfo.environment["COUNTERSIGN_BENCH"] == "1"))
    struct EventWriteBench {
        private static let events = 12_800
        private static let body =
            #"{"event":"Order","properties":{"text":""# + String(repeating: "x", count: 960) + #""}}"#

        private static func group(_ count: Int) -> [EventBatch] {
            let now = Int64(Date().timeIntervalSince1970 * 1_000)
            return (0..<count).map { number in
                EventBatch.of(
                    [UUIDv7.make()], user: "user-\(number % 500)", device: UUIDv7.make(), received: now,
                    body: body,
                    proof: EventProof(
                        verdict: .verified, code: nil, keyID: "key-1", enforcement: "required",
                        dialect: "native",
                        requestID: UUIDv7.make(), tokenID: UUIDv7.make()))
            }
        }

        /// Processor time of this process in microseconds.
        private static func own() -> Double {
            var usage = rusage()
            getrusage(Int32(RUSAGE_SELF.rawValue), &usage)
            return [usage.ru_utime, usage.ru_stime].reduce(0) {
                $0 + Double($1.tv_sec) * 1e6 + Double($1.tv_usec)
            }
        }

        /// Processor time of the server's processes except `watcher` in microseconds, to 10 ms.
        private static func server(_ postmaster: Int, except watcher: Int = 0) -> Double {
            let folders = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
            return folders.compactMap { Int($0) }.reduce(0) { sum, pid in
                guard let stat = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
                    let rest = stat.split(separator: ")").last?.split(separator: " "),
                    pid == postmaster || rest[1] == "\(postmaster)", pid != watcher
                else { return sum }
                return sum + (Double(rest[11]) ?? 0) * 1e4 + (Double(rest[12]) ?? 0) * 1e4
            }
        }

        private static func measure(_ name: String, _ store: any EventStore, _ size: Int, _ postmaster: Int) {
            let groups = (0..<events / size).map { _ in group(size) }
            for group in groups.prefix(max(1, 640 / size)) { _ = store.store(group) }
            let rest = groups.dropFirst(max(1, 640 / size))
            let began = (DispatchTime.now(), own(), server(postmaster))
            for group in rest { _ = store.store(group) }
            let count = Double(rest.count * size)
            let seconds = Double(DispatchTime.now().uptimeNanoseconds - began.0.uptimeNanoseconds) / 1e9
            print(
                name, "groups of \(size): gateway", (own() - began.1) / count, "µs, server",
                (server(postmaster) - began.2) / count, "µs, \(Int(count / seconds)) events/s")
        }

        private static func postmaster() throws -> Int {
            let server = try #require(
                ProcessInfo.processInfo.environment["COUNTERSIGN_TEST_POSTGRESQL_FOLDER"])
            let pidFile = try String(contentsOfFile: server + "/data/postmaster.pid", encoding: .utf8)
            return try #require(pidFile.split(separator: "\n").first.flatMap { Int($0) })
        }

        @Test func costsOfAnEvent() throws {
            let postmaster = try Self.postmaster()
            let folder = FileManager.default.currentDirectoryPath + "/.build/bench-" + UUID().uuidString
            defer { try? FileManager.default.removeItem(atPath: folder) }
            for size in [16, 64, 256] {
                let sqlite = try SQLiteStorage(dataDirectory: folder + "/\(size)")
                    .openEvents(EventStoreOptions(pendingBytes: 1 << 30))
                Self.measure("SQLite", sqlite, size, postmaster)
                sqlite.close()
                try TestDatabase.use { database in
                    let store = try database.openEvents()
                    Self.measure("PostgreSQL", store, size, postmaster)
                    store.close()
                }
            }
        }

        /// Counts the wait events of the database's active backends every 50 ms.
        private static func watch(
            _ connection: PostgreSQLConnection, while isWorking: () -> Bool
        ) throws -> [String: Int] {
            var seen: [String: Int] = [:]
            while isWorking() {
                try connection.each(
                    """
                    SELECT coalesce(wait_event_type || '/' || wait_event, 'running'), count(*) FROM pg_stat_activity
                    WHERE state = 'active' AND pid <> pg_backend_pid() AND datname = current_database() GROUP BY 1
                    """, Parameters()
                ) { row in
                    seen[row.text(0), default: 0] += row.int(1)
                    return true
                }
                usleep(50_000)
            }
            return seen
        }

        /// Measures `gateways` stores that write at the same time.
        private static func measure(_ gateways: Int, _ postmaster: Int, to cost: inout [Int: [Double]]) throws
        {
            try TestDatabase.use { database in
                let stores = try (0..<gateways).map { _ in try database.openEvents() }
                let groups = (0..<gateways).map { _ in (0..<2 * events / 64 / gateways).map { _ in group(64) }
                }
                for (store, groups) in zip(stores, groups) {
                    for group in groups.prefix(10) { _ = store.store(group) }
                }
                let (left, stored) = (Lock(gateways), Lock(0))
                let connection = try database.connect()
                let watcher = try connection.first("SELECT pg_backend_pid()") { $0.int(0) } ?? 0
                let began = (DispatchTime.now(), own(), server(postmaster, except: watcher))
                for (store, groups) in zip(stores, groups) {
                    Thread.detachNewThread {
                        for group in groups.dropFirst(10) {
                            let count = store.store(group).count { (try? $0.get().accepted) == 1 }
                            stored.withLock { $0 += count }
                        }
                        left.withLock { $0 -= 1 }
                    }
                }
                let seen = try watch(connection) { left.withLock { $0 } > 0 }
                let count = Double(stored.withLock { $0 })
                let costs = (
                    (own() - began.1) / count, (server(postmaster, except: watcher) - began.2) / count
                )
                let seconds = Double(DispatchTime.now().uptimeNanoseconds - began.0.uptimeNanoseconds) / 1e9
                cost[gateways, default: []].append(costs.1)
                print(
                    "\(gateways) gateways: gateway", costs.0, "µs, server", costs.1, "µs,",
                    "\(Int(count / seconds)) events/s,",
                    seen.sorted { $0.value > $1.value }.map { "\($0.key) \($0.value)" }.joined(
                        separator: ", "))
                for store in stores { store.close() }
            }
        }

        /// Stores equally many events with 1, 2 and 4 gateways in turn, because the machine's speed varies. To
        /// see the cost of a shared server, compare with simultaneous runs, each on its own server and with
        /// `COUNTERSIGN_BENCH_GATEWAYS=1`.
        @Test func costsOfSeveralGateways() throws {
            let postmaster = try Self.postmaster()
            let given = ProcessInfo.processInfo.environment["COUNTERSIGN_BENCH_GATEWAYS"] ?? "1,2,4"
            var cost: [Int: [Double]] = [:]
            for _ in 0..<5 {
                for gateways in given.split(separator: ",").compactMap({ Int($0) }) {
                    try Self.measure(gateways, postmaster, to: &cost)
                }
            }
            for (gateways, costs) in cost.sorted(by: { $0.key < $1.key }) {
                print("\(gateways) gateways, median: server", costs.sorted()[costs.count / 2], "µs")
            }
        }
    }
}
