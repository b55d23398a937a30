import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import GatewayPostgreSQL

extension PostgreSQLTests {
    /// Cluster membership of several members on one database, without gateways.
    @Suite(.timeLimit(.minutes(2)))
    struct MemberTests {
        /// A member and a record of its callbacks.
        private final class Bench: Sendable {
            let member: any ClusterMember
            /// The control generation that the member read last.
            let seen = Lock<Int64>(0)
            let reports = Lock<[ClusterMemberWork.Report]>([])
            let reported = DispatchSemaphore(value: 0)
            let refreshed = DispatchSemaphore(value: 0)

            init(_ database: TestDatabase, _ id: String, clock: Int64 = 0) throws {
                let cluster = PostgreSQLCluster(database.settings)
                let identity = GatewayIdentity(
                    id: id, name: "machine", version: "1", startedMilliseconds: 1)
                member = cluster.makeMember(
                    identity, now: { Int64(Date().timeIntervalSince1970 * 1_000) + clock })
                try member.start(
                    ClusterMemberWork(
                        refresh: { [self] in
                            let connection = try database.connect()
                            let value =
                                try connection.first("SELECT number FROM generation WHERE kind = 'control'") {
                                    $0.int64(0)
                                } ?? 0
                            seen.withLock { $0 = value }
                            refreshed.signal()
                        },
                        report: { [self] report in
                            reports.withLock { $0.append(report) }
                            reported.signal()
                        }))
            }
        }

        private static func change(_ database: TestDatabase) throws -> Int64 {
            let connection = try database.connect()
            try connection.execute("UPDATE generation SET number = number + 1 WHERE kind = 'control'")
            return try connection.first("SELECT number FROM generation WHERE kind = 'control'") {
                $0.int64(0)
            }
                ?? 0
        }

        @Test func aChangeCompletesOnceEachMemberHasReadIt() throws {
            try TestDatabase.use { database in
                let benches = try (1...3).map { try Bench(database, "g\($0)") }
                defer { for bench in benches { bench.member.stop() } }
                let cluster = PostgreSQLCluster(database.settings)
                for _ in 0..<20 {
                    let change = try Self.change(database)
                    cluster.waitForGateways()
                    for bench in benches { #expect(bench.seen.withLock { $0 } >= change) }
                }
                // Earlier versions store secrets in plain text while a gateway has 0 in this column.
                let seals = try database.connect().all("SELECT opens_seals FROM gateway") { $0.int(0) }
                #expect(seals == [1, 1, 1])
            }
        }

        /// A killed member leaves its row. `waitForGateways()` waits for the member only until the row is stale.
        @Test func aChangeWaitsForADeadGatewayOnlyUntilItsRowIsStale() throws {
            try TestDatabase.use { database in
                let connection = try database.connect()
                let cluster = PostgreSQLCluster(database.settings)
                try connection.execute(
                    "INSERT INTO gateway (id, name, version, started_ms, seen_ms) VALUES ('g', '', '', 1, 0)")
                // If stale rows counted, each wait would take six seconds. A busy machine may delay one.
                let isShort = try (1...3).contains(where: { _ in
                    try connection.execute("UPDATE gateway SET seen_ms = \(ClusterTables.now) - 5000")
                    let start = Uptime.milliseconds
                    cluster.waitForGateways()
                    #expect(try cluster.status().gateways.map(\.isLive) == [false])
                    return Uptime.milliseconds - start < ClusterRules.deadMilliseconds
                })
                #expect(isShort)
                #expect(try cluster.status().warnings.map(\.code) == ["gateway_lost"])
            }
        }

        @Test func clusterDutiesMoveWhenTheirGatewayStops() throws {
            try TestDatabase.use { database in
                let first = try Bench(database, "first")
                #expect(ClusterDuty.allCases.allSatisfy(first.member.has))
                let second = try Bench(database, "second")
                defer { second.member.stop() }
                #expect(!ClusterDuty.allCases.contains(where: second.member.has))
                #expect(second.member.gateways == 2)
                first.member.stop()
                #expect(!ClusterDuty.allCases.contains(where: first.member.has))
                while !ClusterDuty.allCases.allSatisfy(second.member.has) { second.refreshed.wait() }
                #expect(second.member.gateways == 1)
                #expect(
                    try PostgreSQLCluster(database.settings).status().gateways.map(\.identity.id) == [
                        "second"
                    ])
            }
        }

        /// Without the database, a gateway is not current after its time limit, even if the connection hangs.
        @Test func aGatewayCutOffFromTheDatabaseIsNotCurrent() throws {
            try TestDatabase.use { database in
                let bench = try Bench(database, "g")
                defer { bench.member.stop() }
                #expect(bench.member.isCurrent)
                try database.cutOff()
                bench.reported.wait()
                #expect(!bench.member.isCurrent)
                #expect(!ClusterDuty.allCases.contains(where: bench.member.has))
                guard case .cutOff = bench.reports.withLock({ $0[0] }) else {
                    return #expect(Bool(false), "\(bench.reports.withLock { $0 })")
                }
                try database.letIn()
                bench.reported.wait()
                #expect(bench.reports.withLock { $0.last } == .back)
                #expect(bench.member.isCurrent)
            }
        }

        @Test func aClockThatDiffersIsReported() throws {
            try TestDatabase.use { database in
                let bench = try Bench(database, "g", clock: 90_000)
                defer { bench.member.stop() }
                guard case .clockDiffers(let offset)? = bench.reports.withLock({ $0.first }) else {
                    return #expect(Bool(false), "\(bench.reports.withLock { $0 })")
                }
                #expect((89_000...91_000).contains(offset))
                #expect((89_000...91_000).contains(bench.member.lastBeat?.clockOffsetMilliseconds ?? 0))
                #expect(try PostgreSQLCluster(database.settings).status().warnings.map(\.code) == ["clock"])
            }
        }
    }
}
