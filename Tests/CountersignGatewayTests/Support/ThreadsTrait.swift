import CountersignGatewayTesting
import Testing

/// Gives a test threads of its own. It may then wait for a socket or a disk: Swift's shared threads are as few as there are
/// cores, and one that waits holds up all other tests.
struct ThreadsTrait: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await onOwnThreads(function)
    }
}

extension Trait where Self == ThreadsTrait {
    static var ownThreads: Self { Self() }
}
