import CountersignCore
import CountersignGatewayTesting
import CountersignTesting
import Foundation
import GatewayObservability
import GatewayTestSupport
import Testing

@testable import GatewayIngest
@testable import GatewayModel
@testable import GatewayStorage

/// The periodic work of the token service.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct TokenServiceTests {
    private let place: TestStorage
    private let seconds: Int64 = 10_000_000

    init() throws { place = try TestStorage(.app) }

    private func service(
        log: GatewayLog = GatewayLog(level: .off), health: RefreshHealth = RefreshHealth()
    ) throws -> TokenService {
        let storage = try place.open()
        let now: @Sendable () -> Date = { [seconds] in Date(timeIntervalSince1970: Double(seconds)) }
        let issued = IssuedTokens()
        let apps = AppRegistry(directory: try storage.openControl(as: .account), issued: issued, now: now)
        return try TokenService(
            storage: storage, apps: apps, issued: issued, limits: GatewayLimits(), log: log, health: health,
            now: now)
    }

    /// Each refresh deletes one batch, and the next batch need not wait for an hour.
    @Test func expiredSessionsAreDeletedBatchByBatch() throws {
        let store = try place.open().openTokenFamilies(refreshKey: [UInt8](repeating: 7, count: 32))
        var rules = TokenRules()
        rules.refreshSeconds = 100_000
        try store.perform { [rules] table in
            for _ in 0..<(2 * TokenFamilyTable.prunedRows + 1) {
                _ = try table.open(.init(appID: "shop", subject: "user-1", rules: rules), at: 0)
            }
        }
        let service = try service()
        defer { service.stop() }
        for _ in 0..<3 {
            // The store runs its work in order, so the batch of the previous refresh is over.
            try service.store.perform { _ in }
            try service.refresh()
        }
        let left = try service.store.perform { try $0.families(of: "shop", subject: nil, limit: 10_000) }
        #expect(left.isEmpty)
    }

    @Test(.onSQLite("a table that another process renames"))
    func aFailedDeletionIsLogged() throws {
        let lines = Lock<[String]>([])
        _ = try place.open().openTokenFamilies(refreshKey: [UInt8](repeating: 7, count: 32))
        try place.connection(to: "tokens").execute("ALTER TABLE used_assertion RENAME TO elsewhere")
        let log = GatewayLog(level: .error) { line in
            lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
        }
        let service = try service(log: log)
        defer { service.stop() }
        try service.store.perform { _ in }
        log.close()
        #expect(lines.withLock { $0 }.contains { $0.contains("expired sessions not deleted") })
    }

    @Test(.onSQLite("a table that another process renames"))
    func aChangeThatCannotBeReadIsReported() async throws {
        let failed = Handshake()
        let service = try service(health: RefreshHealth(report: { if $0 != nil { failed.signal() } }))
        defer { service.stop() }
        let connection = try place.connection(to: "tokens")
        try connection.execute("ALTER TABLE session RENAME TO elsewhere")
        service.start(urls: [])
        await failed.wait()
        #expect(service.health.problem != nil)
    }
}
