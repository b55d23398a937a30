import CountersignCore
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import CountersignLocations

/// Positioning with simulated Core Location updates.
@Suite(.closing, .timeLimit(.minutes(5)))
struct PositioningTests {
    private func location(accuracy: Double = 5, altitudeAccuracy: Double = 3, speed: Double = 1) -> Location?
    {
        Location(
            latitude: 46, longitude: 14, timestamp: Date(timeIntervalSince1970: 1),
            horizontalAccuracy: accuracy,
            altitude: -2, verticalAccuracy: altitudeAccuracy, speed: speed, course: speed < 0 ? -1 : 90)
    }

    @Test func negativeAccuraciesAndSpeedsCountAsUnknown() throws {
        let known = try #require(location())
        #expect((known.accuracy, known.altitude, known.altitudeAccuracy) == (5, -2, 3))
        #expect((known.speed, known.heading, known.isMoving) == (1, 90, true))
        let unknown = try #require(location(altitudeAccuracy: -1, speed: -1))
        #expect(unknown.altitude == nil && unknown.altitudeAccuracy == nil)
        #expect(unknown.speed == nil && unknown.heading == nil && !unknown.isMoving)
        #expect(location(accuracy: -1) == nil)
    }

    @Test func locationsInTheBackgroundAreRequestedOnlyIfDeclared() {
        #expect(BackgroundModes.allowLocations(["UIBackgroundModes": ["fetch", "location"]]))
        #expect(!BackgroundModes.allowLocations(["UIBackgroundModes": ["fetch"]]))
        #expect(!BackgroundModes.allowLocations(["UIBackgroundModes": "location"]))
        #expect(!BackgroundModes.allowLocations([:]))
        #expect(!BackgroundModes.allowLocations(nil))
    }

    @Test func authorizationsMatchTheStatusNumbersOfCoreLocation() {
        let words = (-1...5).map { PositioningStatus.Authorization(status: $0).rawValue }
        #expect(
            words == [
                "unknown", "not_determined", "restricted", "denied", "always", "when_in_use", "unknown",
            ])
    }

    @Test func locationsAreRecordedAndTheStatusIsReported() async throws {
        let bench = LocationBench()
        let statuses = Lock([PositioningStatus]())
        let (signals, signal) = AsyncStream.makeStream(of: PositioningSignal.self)
        let (events, event) = AsyncStream.makeStream(of: Void.self)
        let requested = Lock([LocationConfiguration.Positioning]())
        let client = try bench.make { configuration in
            configuration.positioning.desiredAccuracy = 100
            configuration.onPositioning = { status in
                statuses.withLock { $0.append(status) }
                event.yield()
            }
            configuration.onLocation = { _ in event.yield() }
        }
        client.listen { settings in
            requested.withLock { $0.append(settings) }
            return signals
        }
        // Ignored, because a client listens to one source at a time.
        client.listen { _ in AsyncStream { $0.finish() } }
        let denied = PositioningStatus(authorization: .denied, isPrecise: false, errorCode: 1)
        signal.yield(.status(denied))
        if let location = location() { signal.yield(.location(location)) }
        var reports = events.makeAsyncIterator()
        await reports.next()
        await reports.next()
        #expect(try await client.count() == 1)
        #expect(statuses.withLock { $0 } == [denied])
        #expect(requested.withLock { $0 }.map(\.desiredAccuracy) == [100])
        #expect(requested.withLock { $0 }.map(\.distanceFilter) == [10])
        #expect(bench.lines.withLock { $0 }.contains { $0.hasPrefix("positioning") && $0.contains("denied") })
    }

    @Test func aLocationSourceDoesNotRetainTheClient() async throws {
        let bench = LocationBench()
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        // The bench would keep the client until the end of the test.
        var client: LocationClient? = try LocationClient(
            configuration: bench.configuration, transport: bench.transport, clock: bench.clock)
        weak let observed = client
        client?.listen { _ in
            let (signals, signal) = AsyncStream.makeStream(of: PositioningSignal.self)
            signal.onTermination = { _ in end.yield() }
            start.yield()
            return signals
        }
        for await _ in started { break }
        client = nil
        for await _ in ended { break }
        #expect(observed == nil)
    }

    @Test func stopEndsTheSource() async throws {
        let bench = LocationBench()
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let client = try bench.make()
        let (signals, signal) = AsyncStream.makeStream(of: PositioningSignal.self)
        signal.onTermination = { _ in end.yield() }
        client.listen { _ in signals }
        client.stop()
        for await _ in ended { break }
    }
}
