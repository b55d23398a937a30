import CountersignCore
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import CountersignDelivery
@testable import CountersignLocations
@testable import CountersignTransport

/// Responses of a location server, and concurrent use of the queue.
@Suite(.closing, .timeLimit(.minutes(5)))
struct LocationAnswerTests {
    private let bench = LocationBench()
    private let here = Location(
        latitude: 46.05, longitude: 14.51, timestamp: Date(timeIntervalSince1970: 1_430_800_314))

    private func destination(root: String = "location") -> LocationDestination {
        var http = LocationConfiguration.HTTP()
        http.url = "https://a/"
        http.rootProperty = root
        return LocationDestination(settings: .init(http: http, refreshStatuses: []))
    }

    private func event(_ body: String) -> QueuedEvent {
        QueuedEvent(sequence: 1, messageID: "m", userID: nil, body: Array(body.utf8))
    }

    @Test(arguments: [
        "", "{}", #"{"rejected":[{"index":0,"code":"too_old"}]}"#,
        #"{"errors":[{"index":0,"code":"too_old"}]}"#,
        #"{"accepted":1,"rejected":[{"index":0,"code":"too_old"}]}"#,
        #"{"accepted":9223372036854775807,"rejected":[{"index":0,"code":"too_old"}]}"#,
    ])
    func a400AcceptsNoEvent(body: String) {
        let answer = destination().read(
            TransportResponse(status: 400, body: Array(body.utf8)), for: [event("{}")])
        if case .accepted = answer.meaning { Issue.record("\(answer.meaning)") }
    }

    @Test func aRecordWithoutParametersKeepsItsBytes() {
        let record = #"{"z":1.10,"a":1e2}"#
        let request = destination(root: ".").request(
            for: [event(record)], attempt: 1, deviceID: "", now: Date())
        #expect(String(decoding: request.body, as: UTF8.self) == record)
    }

    @Test func anotherSendingProcessIsReported() async throws {
        let client = try bench.make()
        let uuid = try await client.record(here)
        _ = try await client.count()
        let queue = bench.configuration.folder.directory.appendingPathComponent("queue.sqlite")
        let holder = LeaseOwner()
        let other = try EventQueue(path: queue.path, limits: QueueLimits(), clock: bench.clock)
        #expect(try other.acquireLease(for: holder, uptime: bench.clock.uptime, request: 30) == nil)
        #expect(await code { _ = try await client.sync() } == .syncInProgress)
        try other.releaseLease(of: holder)
        try await client.sync()
        #expect(bench.stored.withLock { $0 } == [uuid])
    }

    /// A sequence of three locations that cancels its task after the first location, and continues.
    private struct Stubborn: AsyncSequence, AsyncIteratorProtocol, Sendable {
        let location: Location
        var left = 3

        func makeAsyncIterator() -> Self { self }

        mutating func next() async -> Location? {
            if left == 2 { withUnsafeCurrentTask { $0?.cancel() } }
            guard left > 0 else { return nil }
            left -= 1
            return location
        }
    }

    @Test func aCancelledTaskRecordsNoMore() async throws {
        let client = try bench.make()
        let recording = Task { [here] in try await client.record(contentsOf: Stubborn(location: here)) }
        #expect(try await recording.value == 1)
        #expect(try await client.count() == 1)
    }

    @Test func aMalformedSectionOfStoredSettingsKeepsItsConfiguration() throws {
        var configuration = bench.configuration
        let file = SettingsFile(directory: bench.directory, log: nil)
        try DurableFile.write(Data(#"{"http":{"method":"PUT"},"authorization":[]}"#.utf8), to: file.path)
        file.restore(&configuration)
        #expect(configuration.http.method == "PUT")
        #expect(configuration.authorization == bench.configuration.authorization)
        #expect(configuration.authorization.refreshUrl != nil)
    }
}
