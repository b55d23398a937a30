import CountersignGatewayTesting
import GatewayTestSupport
import Testing

/// All tests that need a server. Followers read events only up to the server's oldest open transaction.
/// Tests call ``TestDatabase/waitForTransactions()`` before they read events, to wait for other tests' transactions.
@Suite(.enabled(if: TestDatabase.server != nil), .ownThreads, .timeLimit(.minutes(5)))
struct PostgreSQLTests {}
