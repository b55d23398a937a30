import CountersignGatewayTesting
import Testing

/// All tests that need a server. Whoever follows events does so up to the oldest transaction of the server that is open: tests
/// wait for those of others with ``TestDatabase/settle()`` before they read what they have stored.
@Suite(.enabled(if: TestDatabase.server != nil)) struct PostgreSQLTests {}
