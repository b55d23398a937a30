import CountersignGatewayTesting
import Testing

/// Runs a test on its own threads, so that the test may block on a socket or a disk. Swift's cooperative
/// thread pool has one thread per core, so blocking it would delay all other tests.
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
