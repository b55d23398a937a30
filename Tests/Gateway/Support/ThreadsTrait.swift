import CountersignGatewayTesting
package import Testing

/// Runs a test on its own threads, so that the test may block on a socket or a disk. Swift's cooperative
/// thread pool has one thread per core, so blocking it would delay all other tests.
package struct ThreadsTrait: SuiteTrait, TestTrait, TestScoping {
    package let isRecursive = true

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await onOwnThreads(function)
    }
}

extension Trait where Self == ThreadsTrait {
    package static var ownThreads: Self { Self() }
}
