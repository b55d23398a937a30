import CountersignGatewayTesting
import Testing

/// All tests that need a server. Whoever follows events does so up to the oldest transaction of the server that is open: tests
/// wait for those of others with ``TestDatabase/settle()`` before they read what they have stored.
@Suite(.enabled(if: TestDatabase.server != nil), WaitingTests(), .timeLimit(.minutes(5)))
struct PostgreSQLTests {}

/// Each waits for the server on threads of its own.
private struct WaitingTests: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await onOwnThreads(function)
    }
}
