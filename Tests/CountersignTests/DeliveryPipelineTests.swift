import CountersignCore
import CountersignDelivery
import CountersignTesting
import CountersignTransport
import Foundation
import Testing

/// A key that another program writes into a file and replaces before it expires, as Kubernetes does with projected tokens.
private actor FileCredentialSource: CredentialSource {
    /// Nobody has to hand the next key over: it is in the file.
    nonisolated var isRenewing: Bool { true }
    nonisolated var remedy: String? { "put another key into the file" }

    /// The server's clock is of no interest: the key says nothing about time.
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
        post: @escaping @Sendable (@escaping CredentialWork) -> Void
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
        // Still the refused one: the server is asked again now and then, not over and over.
        if rejected == generation {
            return .doubtful(credential, .init("key_unchanged", "the same key again"))
        }
        return .ready(credential)
    }

    func noteServerTime(_ date: Date) {}

    func forgetAll() {
        newest = nil
    }
}

/// A line of text: the pipeline keeps its bytes and asks no further.
private struct Line: RecordContent {
    let text: String

    var estimatedBytes: Int { text.utf8.count }

    func rendered(for record: EventRecord, anonymousID: String) -> [UInt8] { Array(text.utf8) }
}

/// A server that takes lines, one or many, and answers 204.
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

/// The example of docs/delivery-pipeline.md: a client over the pipeline with a source, a content and a destination of its own.
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

    @Test func aSourceAContentAndADestinationMakeAClient() async throws {
        let accepted = Lock("Bearer first")
        let transport = ScriptedTransport { request in
            let isGood = request.header("Authorization") == accepted.withLock { $0 }
            return TransportResponse(status: isGood ? 204 : 401)
        }
        let pipeline = try makePipeline(transport)
        for text in ["one", "two"] { _ = try await pipeline.store(Line(text: text)) }

        // Without a key nothing is sent.
        #expect(await pipeline.flush().batches.map(\.code) == ["no_key"])
        #expect(transport.requests.isEmpty)

        try Data("first".utf8).write(to: keyFile)
        #expect(await pipeline.flush().isComplete)
        #expect(transport.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["one\ntwo"])

        // A key that is refused is asked for again, and the one that the file has by then is used at once.
        accepted.withLock { $0 = "Bearer second" }
        _ = try await pipeline.store(Line(text: "three"))
        #expect(await pipeline.flush().isComplete == false)
        try Data("second".utf8).write(to: keyFile)
        #expect(await pipeline.flush().isComplete)
        #expect(transport.requests.last?.header("Authorization") == "Bearer second")
        await pipeline.close()
    }
}
