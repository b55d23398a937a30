import CountersignDelivery
import CountersignTesting
import Foundation
import Testing

@testable import CountersignLocations

/// The lock that lets one process at a time refresh tokens.
@Suite(.timeLimit(.minutes(5)))
struct TokenPairStoreTests {
    private let folder = TemporaryFolder()
    private let clock = ManualClock()
    private var lockFile: URL { folder.url.appendingPathComponent("tokens.lock") }

    private func store() -> TokenPairStore {
        TokenPairStore(store: FileTokenStore(directory: folder.url), lockFile: lockFile)
    }

    @Test func theWaitForALockHeldByAnotherProcessIsLimited() async throws {
        let (holder, other) = (store(), store())
        try await holder.lock(clock: clock)
        let locking = Task { [clock] in try await other.lock(clock: clock) }
        await clock.waitForSleeper()
        clock.advance(by: 45)
        let error = await #expect(throws: POSIXError.self) { try await locking.value }
        #expect(error?.code == .ETIMEDOUT)
        await holder.unlock()
        try await other.lock(clock: clock)
        await other.unlock()
    }

    @Test func aLockFileThatCannotBeMadeIsReported() async throws {
        try FileManager.default.createDirectory(at: lockFile, withIntermediateDirectories: true)
        let error = await #expect(throws: POSIXError.self) { try await store().lock(clock: clock) }
        #expect(error?.code == .EISDIR)
    }
}
