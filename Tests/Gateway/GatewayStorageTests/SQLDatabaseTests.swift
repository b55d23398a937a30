import CountersignCore
import CountersignSQLite
import GatewayModel
import Testing

@testable import GatewayStorage

/// Stores retry transactions that conflict with others, as on an engine with several writers.
struct SQLDatabaseTests {
    private struct InjectedError: StorageError {
        var isFull = false
        var isRetryable = false
    }

    /// Rolls back the first transactions at their end.
    private final class Contended: SQLDatabase {
        private struct State: @unchecked Sendable {
            let sqlite: SQLiteConnection
            var errors: [InjectedError]
            var runs = 0
            var areAlone: [Bool] = []
        }

        private let state: Lock<State>
        var runs: Int { state.withLock { $0.runs } }
        var areAlone: [Bool] { state.withLock { $0.areAlone } }

        init(_ errors: [InjectedError]) throws {
            let sqlite = try SQLiteConnection(path: ":memory:")
            try sqlite.migrate(TokenFamilySchema.migrations)
            state = Lock(State(sqlite: sqlite, errors: errors))
        }

        func read<Result>(_ body: (any SQLConnection) throws -> Result) throws(GatewayError) -> Result {
            try state.withLock { state throws(GatewayError) in
                try GatewayError.storing { try body(state.sqlite) }
            }
        }

        func transaction<Result>(
            alone: Bool, _ body: (any SQLConnection) throws -> Result
        ) throws -> Result {
            try state.withLock { state in
                state.runs += 1
                state.areAlone.append(alone)
                return try state.sqlite.transaction {
                    let result = try body(state.sqlite)
                    if let error = state.errors.popLast() { throw error }
                    return result
                }
            }
        }

        func version() -> Int64 { 0 }
    }

    private let opening = TokenFamilyTable.Opening(appID: "shop", subject: "user-1", rules: TokenRules())

    private func families(_ database: Contended) throws -> Int? {
        try database.read { try $0.first("SELECT count(*) FROM session") { $0.int(0) } }
    }

    @Test func aBatchWithASerializationConflictRunsAgain() throws {
        let database = try Contended(Array(repeating: InjectedError(isRetryable: true), count: 4))
        let store = TokenFamilyStore(database, refreshKey: Array(repeating: 7, count: 32))
        let (family, token) = try store.perform { [opening] in try $0.open(opening, at: 0) }
        #expect(database.runs == 5 && database.areAlone.allSatisfy { !$0 })
        #expect(try families(database) == 1)
        // The result comes from the committed run.
        #expect(try store.perform { try $0.family(id: family.id) }?.id == token.familyID)
    }

    @Test func aConflictingBatchFailsAfterFiveAttempts() throws {
        let database = try Contended(Array(repeating: InjectedError(isRetryable: true), count: 5))
        #expect(throws: GatewayError.self) { try database.write { _ in } }
        #expect(database.runs == 5 && database.areAlone.allSatisfy { $0 })
        try database.write { _ in }
        #expect(database.runs == 6)
    }

    @Test func permanentErrorsAreNotRetried() throws {
        let database = try Contended([InjectedError(isFull: true)])
        let store = TokenFamilyStore(database, refreshKey: Array(repeating: 7, count: 32))
        let reason = Lock<StoreFailure.Reason?>(nil)
        store.submit({ [opening] in try $0.open(opening, at: 0) }) { result in
            if case .failure(let failure) = result { reason.withLock { $0 = failure.reason } }
        }
        store.close()
        #expect(reason.withLock { $0 } == .full)
        #expect(database.runs == 1)
        #expect(try families(database) == 0)
    }
}
