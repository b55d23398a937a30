import CountersignCore
package import Testing

/// Runs registered closures when a test ends, even if it fails.
package struct Closing: SuiteTrait, TestTrait, TestScoping {
    @TaskLocal private static var opened: Lock<[@Sendable () async -> Void]>?

    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let opened = Lock<[@Sendable () async -> Void]>([])
        let result: Result<Void, any Error>
        do {
            result = .success(try await Self.$opened.withValue(opened, operation: function))
        } catch {
            result = .failure(error)
        }
        for close in opened.withLock({ $0 }).reversed() { await close() }
        try result.get()
    }

    /// Runs `close` at the end of the current test.
    package static func afterTest(_ close: @escaping @Sendable () async -> Void) {
        guard let opened else {
            Issue.record("nothing closes what this test opens: its suite lacks the trait .closing")
            return
        }
        opened.withLock { $0.append(close) }
    }
}

extension Trait where Self == Closing {
    package static var closing: Self { Closing() }
}
