import CountersignGatewayTesting
import Testing

/// All tests that need a server. Followers read events only up to the server's oldest open transaction.
/// Tests call ``TestDatabase/settle()`` before they read events, to wait for other tests' transactions.
@Suite(.enabled(if: TestDatabase.server != nil), WaitingTests(), .timeLimit(.minutes(5)))
struct PostgreSQLTests {}

/// Runs each test on its own threads, because it blocks while it waits for the server.
private struct WaitingTests: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await onOwnThreads(function)
    }
}
