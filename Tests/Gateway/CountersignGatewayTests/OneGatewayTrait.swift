import CountersignGatewayTesting
import GatewayModel
import Testing

/// Gives all tests of a suite one gateway, which requires no tokens: for tests that change nothing in it.
struct OneGatewayTrait: SuiteTrait, TestScoping {
    @TaskLocal static var fixture: GatewayFixture?

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await Self.$fixture.withValue(GatewayFixture(enforcement: .disabled)) { try await function() }
    }
}

extension Trait where Self == OneGatewayTrait {
    static var oneGateway: Self { Self() }
}
