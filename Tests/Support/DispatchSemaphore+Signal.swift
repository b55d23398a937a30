import Foundation
package import Testing

extension DispatchSemaphore {
    /// Waits at most a minute for a signal. A test's time limit does not end a thread that waits forever.
    package func waitForSignal(sourceLocation: SourceLocation = #_sourceLocation) throws {
        try #require(
            wait(timeout: .now() + 60) == .success, "the signal did not come", sourceLocation: sourceLocation)
    }
}
