import CountersignGatewayTesting
import Testing

/// All tests that need a server, one at a time: whoever reads events waits for every open transaction of the server.
@Suite(.serialized, .enabled(if: TestDatabase.server != nil)) struct PostgreSQLTests {}
