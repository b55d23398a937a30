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

/// What storing an event costs the processors, here and on the server. It prints and does not judge: run it in a release
/// build, with `COUNTERSIGN_BENCH=1`, by `scripts/postgresql.sh run` without `--fast`.
extension PostgreSQLTests {
    @Suite(.enabled(if: ProcessInfo.processInfo.environment["COUNTERSIGN_BENCH"] == "1"))
    struct EventWriteBench {
        private static let events = 12_800
        private static let body =
            #"{"event":"Order","properties":{"text":""# + String(repeating: "x", count: 960) + #""}}"#

        private static func group(_ count: Int) -> [EventBatch] {
            let now = Int64(Date().timeIntervalSince1970 * 1_000)
            return (0..<count).map { number in
                var batch = EventBatch.of(
                    [UUIDv7.make()], user: "user-\(number % 500)", device: UUIDv7.make(), received: now,
                    body: body)
                batch.proof = EventProof(
                    verdict: .verified, code: nil, keyID: "key-1", enforcement: "required", dialect: "native",
                    requestID: UUIDv7.make(), tokenID: UUIDv7.make())
                return batch
            }
        }

        /// Microseconds of processor time of this process.
        private static func own() -> Double {
            var usage = rusage()
            getrusage(Int32(RUSAGE_SELF.rawValue), &usage)
            return [usage.ru_utime, usage.ru_stime].reduce(0) {
                $0 + Double($1.tv_sec) * 1e6 + Double($1.tv_usec)
            }
        }

        /// The same of the server's processes, to 10 ms.
        private static func server(_ postmaster: Int) -> Double {
            let folders = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
            return folders.compactMap { Int($0) }.reduce(0) { sum, pid in
                guard let stat = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
                    let rest = stat.split(separator: ")").last?.split(separator: " "),
                    pid == postmaster || rest[1] == "\(postmaster)"
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

        @Test func costsOfAnEvent() throws {
            let server = try #require(
                ProcessInfo.processInfo.environment["COUNTERSIGN_TEST_POSTGRESQL_FOLDER"])
            let pidFile = try String(contentsOfFile: server + "/data/postmaster.pid", encoding: .utf8)
            let postmaster = try #require(pidFile.split(separator: "\n").first.flatMap { Int($0) })
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
    }
}
