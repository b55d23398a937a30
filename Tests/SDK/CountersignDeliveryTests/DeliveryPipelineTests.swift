import CountersignCore
import CountersignDelivery
import CountersignTesting
import CountersignTransport
import Foundation
import SDKTestSupport
import Testing

/// A key in a file that another program replaces before it expires, like Kubernetes projected tokens.
private actor FileCredentialSource: CredentialSource {
    /// The app does not have to provide the next key, because it is read from the file.
    nonisolated var isRenewing: Bool { true }
    nonisolated var remedy: String? { "put another key into the file" }

    /// The source cannot read the key's expiry, so it does not need the server's clock.
    let clockOffset: TimeInterval = 0

    private let path: String
    private let clock: any ClientClock
    private var newest: SignedToken?
    private var generation = 0

    init(path: String, clock: any ClientClock) {
        self.path = path
        self.clock = clock
    }

    func credential(
        for owner: UserKey, replacing rejected: Int?,
        post: @escaping @Sendable (@escaping CredentialAction) -> Void
    ) -> CredentialDecision {
        let text = FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
        if let token = text.flatMap(SignedToken.init), token != newest {
            newest = token
            generation += 1
        }
        let credential = Credential(.bearer, token: newest, generation: generation)
        if newest == nil {
            return .unavailable(.init("no_key", "the file has no key yet"), retryAt: clock.uptime + 5)
        }
        // The file still has the rejected key. Doubtful credentials are retried at longer intervals.
        if rejected == generation {
            return .doubtful(credential, .init("key_unchanged", "the same key again"))
        }
        return .ready(credential)
    }

    func noteServerTime(_ date: Date) {}

    func removeAll() {
        newest = nil
    }
}

/// A line of text, sent as it is.
private struct Line: RecordContent {
    let text: String

    var estimatedBytes: Int { text.utf8.count }

    func rendered(for record: EventRecord, anonymousID: String) -> [UInt8] { Array(text.utf8) }
}

/// A server that accepts one or more lines and answers 204.
private struct LineServer: Destination {
    let url: URL

    func request(for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date) -> TransportRequest {
        TransportRequest(
            url: url, headers: [(name: "Content-Type", value: "text/plain")],
            body: Array(events.map(\.body).joined(separator: [UInt8(ascii: "\n")])))
    }

    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer {
        let problem = ServerAnswer.Explanation("http_\(response.status)", "the server did not take the lines")
        let meaning: ServerAnswer.Meaning =
            switch response.status {
            case 204: .accepted(duplicates: 0, rejected: [], warning: nil)
            case 401: .tokenProblem(.init(code: .expired, reason: "http_401"))
            default:
                ServerAnswer.meaning(ofStatus: response.status, explanation: problem) ?? .tryLater(problem)
            }
        return ServerAnswer(meaning, status: response.status)
    }
}

/// The example of docs/internals/delivery-pipeline.md: a client with its own source, content and destination.
struct DeliveryPipelineTests {
    private let folder = TemporaryFolder()
    private let clock = ManualClock()
    private var keyFile: URL { folder.url.appendingPathComponent("key") }

    private func makePipeline(_ transport: ScriptedTransport) throws -> DeliveryPipeline {
        try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
        var settings = DeliverySettings(directory: folder.url.appendingPathComponent("queue"))
        settings.flushPolicy = .manual
        return try DeliveryPipeline(
            settings: settings, storage: settings.makeStorage(clock: clock),
            destination: LineServer(url: try #require(URL(string: "https://lines.example/"))),
            credentials: FileCredentialSource(path: keyFile.path, clock: clock), transport: transport,
            clock: clock, random: { 1 })
    }

    @Test func aPipelineWorksWithACustomSourceContentAndDestination() async throws {
        let accepted = Lock("Bearer first")
        let transport = ScriptedTransport { request in
            let isGood = request.header("Authorization") == accepted.withLock { $0 }
            return TransportResponse(status: isGood ? 204 : 401)
        }
        let pipeline = try makePipeline(transport)
        for text in ["one", "two"] { _ = try await pipeline.store(Line(text: text)) }

        #expect(await pipeline.engine.flush().batches.map(\.code) == ["no_key"])
        #expect(transport.requests.isEmpty)

        try Data("first".utf8).write(to: keyFile)
        #expect(await pipeline.engine.flush().isComplete)
        #expect(transport.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["one\ntwo"])

        // After a rejected key the source reads the file again, and the new key is used at once.
        accepted.withLock { $0 = "Bearer second" }
        _ = try await pipeline.store(Line(text: "three"))
        #expect(await pipeline.engine.flush().isComplete == false)
        try Data("second".utf8).write(to: keyFile)
        #expect(await pipeline.engine.flush().isComplete)
        #expect(transport.requests.last?.header("Authorization") == "Bearer second")
        await pipeline.close()
    }
}
