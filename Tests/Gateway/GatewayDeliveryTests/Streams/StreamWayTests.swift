import CountersignCore
import CountersignCrypto
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayDelivery
@testable import GatewayStorage

/// Publishing to an in-memory stream that loses messages, acknowledgements and state. Each event must be
/// in the stream once and in order.
@Suite(.ownThreads, .timeLimit(.minutes(2)))
struct StreamWayTests {
    let bench: StreamBench
    private let pool = ManualPool()
    private let way: StreamWay

    init() throws {
        bench = try StreamBench()
        let (stream, pool) = (bench.stream, pool)
        way = StreamWay(
            connect: { _ throws(StreamError) in try stream.connect() },
            clock: { stream.clock.withLock { $0 } }, run: { pool.add($0) })
    }

    private func code(_ body: () throws -> Void) -> StreamError.Code? {
        guard case .failure(let error) = Result(catching: body) else { return nil }
        return (error as? StreamError)?.code
    }

    /// Delivers the first event through ``way``.
    private func deliver(_ settings: StreamSettings) throws -> String? {
        let answer = Lock<String?>(nil)
        var batch = DeliveryBatch(Streams.route(to: settings), DeliveryProgress(committed: 0)) { _, _ in "" }
        batch.events = try bench.storage.log.follow(EventQuery(appID: "shop"), after: 0, limit: 1).events
        batch.positions = try bench.storage.log.positions()
        way.accept(batch) { given in answer.withLock { $0 = "\(given)" } }
        pool.drain()
        return answer.withLock { $0 }
    }

    @Test func everyEventIsPublishedOnceUnchangedAndInOrder() throws {
        try bench.store(1_300)
        let settings = try bench.create()
        let publisher = try bench.publisher(settings)
        try bench.run(publisher)
        #expect(bench.stream.positions == bench.stored)
        #expect(bench.stream.mostUnderWay <= PublishWindow.mostMessages)
        let message = try #require(bench.stream.messages.last)
        let hash = SHA256.digest(Array("ada".utf8)).hexadecimal.prefix(16)
        #expect(message.subject == "countersign.shop.track.\(hash)")
        #expect(message.body == "{}")
        #expect(message.headers["Countersign-Verdict"] == "unknown")
        #expect(message.headers["Nats-Expected-Stream"] == "E")
        let position = try #require(message.headers["Countersign-Position"])
        let positions = try bench.storage.log.positions()
        #expect(try bench.isAtEnd(positions.sequence(of: position, in: "shop")))
        #expect(
            try bench.isAtEnd(publisher.progress.committed) && publisher.progress.receiverSequence == 1_300)
        try bench.store(3)
        try bench.run(publisher)
        #expect(bench.stream.positions == bench.stored)
    }

    @Test func keptClaimsAreInTheMessageWithTheirTypes() throws {
        let claims = #"{"plan":"pro","seats":3,"trial":false}"#
        let proof = EventProof(verdict: .verified, dialect: "native", requestID: "r", claims: claims)
        try bench.store(1, proof: proof)
        try bench.run(try bench.publisher(try bench.create()))
        #expect(bench.stream.messages.map { $0.headers["Countersign-Claims"] } == [claims])
    }

    @Test func unansweredMessagesAreStoredOnce() throws {
        try bench.store(900)
        let publisher = try bench.publisher(try bench.create())
        bench.stream.unanswered = 40
        bench.stream.lost = 0
        try bench.run(publisher)
        #expect(bench.stream.positions == bench.stored)
        try bench.store(900)
        bench.stream.lost = 7
        try bench.run(publisher)
        #expect(bench.stream.positions == bench.stored)
        // All messages are lost, so only the time-out detects the loss.
        try bench.store(5)
        bench.stream.lost = 5
        try bench.run(publisher)
        #expect(bench.stream.positions == bench.stored)
    }

    @Test func fewMessagesRequestAnAcknowledgementAndRejectionsAreStillReported() throws {
        try bench.store(2)
        let publisher = try bench.publisher(try bench.create())
        try bench.run(publisher)
        try bench.store(2_000)
        bench.stream.asked = 0
        try bench.run(publisher)
        #expect(bench.stream.positions == bench.stored && bench.stream.asked < 20)
        #expect(bench.stream.mostUnderWay <= PublishWindow.mostMessages)
        // Rejects a message in the middle of a page, which is first sent without a request for an acknowledgement.
        (bench.stream.rejection, bench.stream.rejected) = ("message size exceeds maximum", "m-2100")
        try bench.store(200)
        #expect {
            try bench.run(publisher)
        } throws: { ($0 as? StreamError)?.reason.contains("message size exceeds maximum") == true }
        #expect(bench.stream.positions == Array(bench.stored.prefix(2_100)))
        bench.stream.rejection = nil
        try bench.run(publisher)
        #expect(bench.stream.positions == bench.stored)
    }

    @Test func aSilentStreamGetsAtMostOneWindowOfMessages() throws {
        try bench.store(2_000)
        let publisher = try bench.publisher(try bench.create())
        bench.stream.isSilent = true
        // Reads the stream's state, then publishes once.
        for _ in 0..<2 { publisher.step() }
        #expect(bench.stream.messages.count == PublishWindow.mostMessages)
        bench.stream.isSilent = false
        try bench.run(publisher)
        #expect(bench.stream.positions == bench.stored)
    }

    @Test func aClosedWayNeitherWaitsForAcknowledgementsNorConnects() throws {
        try bench.store(1)
        let (stream, settings) = (bench.stream, try bench.create())
        stream.isSilent = true
        stream.onWait = { [way] in way.close() }
        let began = stream.clock.withLock { $0 }
        for _ in 0..<2 { #expect(try deliver(settings) == "notTried") }
        #expect(stream.clock.withLock { $0 } - began < 1_000)
        #expect(stream.messages.count == 1 && stream.connections == 1)
    }

    @Test func changedSettingsConnectAgain() throws {
        var settings = try bench.create()
        for file in ["a", "a", "b"] {
            settings.credentialsFile = file
            _ = try deliver(settings)
        }
        #expect(bench.stream.connections == 2)
    }

    @Test func eventsThatTheStreamLostArePublishedAgain() throws {
        try bench.store(700)
        let publisher = try bench.publisher(try bench.create())
        try bench.run(publisher)
        bench.stream.loseTail(500)
        try bench.store(10)
        try bench.run(publisher)
        #expect(bench.stream.positions == bench.stored)
        // Deleting single messages does not change the stream's last sequence. No new event follows.
        bench.stream.messages.removeLast(30)
        bench.pass(10_000)
        try bench.run(publisher)
        try bench.run(publisher)
        #expect(bench.stream.positions == bench.stored)
    }

    @Test func purgedMessagesAreNotPublishedAgainAndANewStreamIsFilled() throws {
        try bench.store(20)
        let settings = try bench.create()
        var publisher = try bench.publisher(settings)
        try bench.run(publisher)
        bench.stream.messages = []
        try bench.store(3)
        publisher = try bench.publisher(settings, try publisher.progress)
        try bench.run(publisher)
        #expect(bench.stream.positions == Array(bench.stored.suffix(3)))
        // A stream that was deleted on the server is created again and filled with all events.
        (bench.stream.messages, bench.stream.last, bench.stream.config) = ([], 0, nil)
        try bench.store(1)
        try bench.run(publisher)
        #expect(bench.stream.positions == bench.stored)
    }

    @Test func twoPublishersOfOneStreamPublishEachEventOnce() throws {
        try bench.store(1_500)
        let settings = try bench.create()
        let rivals = [try bench.publisher(settings), try bench.publisher(settings)]
        for _ in 0..<40 {
            for rival in rivals { rival.step() }
        }
        try bench.run(rivals[0])
        #expect(bench.stream.positions == bench.stored)
    }

    @Test func aCheckpointCountsOnlyInItsEpochAndLog() throws {
        try bench.store(10)
        let first = try bench.create()
        let publisher = try bench.publisher(first)
        try bench.run(publisher)
        // After a seek the checkpoint in the stream belongs to the earlier epoch.
        let middle = try bench.storage.log.follow(EventQuery(appID: "shop"), after: 0, limit: 5).events[4]
        try bench.directory.streams.seek("out", of: "shop", after: middle.sequence, at: 5)
        let moved = try bench.directory.streams.stream("out", of: "shop")
        #expect(moved.epoch == first.epoch + 1)
        try bench.run(try bench.publisher(moved, try publisher.progress))
        #expect(bench.stream.positions == bench.stored + Array(bench.stored.suffix(5)))
        // A gateway restored to an earlier epoch must not publish to the stream.
        #expect(code { try bench.run(try bench.publisher(first, try publisher.progress)) } == .markUnusable)
        // A gateway with another log must not publish either.
        bench.stream.messages[bench.stream.messages.count - 1].headers["Countersign-Position"] = "AAAA"
        #expect(code { try bench.run(try bench.publisher(moved)) } == .markUnusable)
        bench.stream.messages[bench.stream.messages.count - 1].headers = [:]
        let later = try bench.publisher(moved, nil)
        try bench.run(later)
        #expect(
            code {
                bench.stream.messages[bench.stream.messages.count - 1].headers = [:]
                bench.pass(10_000)
                try bench.run(later)
                try bench.run(later)
            } == .markUnusable)
    }

    @Test func aMissingStreamIsCreatedAndAnExistingOneNeverChanged() throws {
        try bench.store(1)
        let settings = try bench.create(["replicas": 3, "subject": "a.{type}.{app}"])
        try bench.run(try bench.publisher(settings))
        let made = try #require(bench.stream.config)
        #expect(made["subjects"] == ["a.*.shop"] && made["num_replicas"] == 3 && made["storage"] == "file")
        let unfit: [(String, JSONValue)] = [
            ("subjects", ["a.*.other"]), ("subjects", ["b.>"]), ("num_replicas", 1), ("sealed", true),
            ("no_ack", true), ("mirror", ["name": "M"]), ("sources", [["name": "S"]]),
        ]
        for (name, value) in unfit {
            bench.stream.config = made.merging([name: value]) { $1 }
            let before = bench.stream.config
            #expect(
                code { try bench.run(try bench.publisher(settings)) } == .streamDiffers, "\(name) \(value)")
            #expect(bench.stream.config == before)
        }
        for subjects: JSONValue in [["a.>"], ["x", "a.*.*"], [">"], ["*.track.shop", "a.*.shop"]] {
            bench.stream.config = made.merging(["subjects": subjects]) { $1 }
            #expect(code { try bench.run(try bench.publisher(settings)) } == nil, "\(subjects)")
        }
        bench.stream.config = made
        bench.stream.rejection = "maximum messages exceeded"
        try bench.store(1)
        #expect(code { try bench.run(try bench.publisher(settings)) } == .streamRejects)
    }

    @Test func falseDuplicateRepliesEndWithAnError() throws {
        try bench.store(1)
        let settings = try bench.create()
        bench.stream.repliesDuplicate = true
        #expect(code { try bench.run(try bench.publisher(settings)) } == .streamRejects)
        bench.stream.repliesDuplicate = false
        try bench.run(try bench.publisher(settings))
        #expect(bench.stream.positions == bench.stored)
    }

    @Test(arguments: [
        (Int64.max, StreamError.Code.streamDiffers, []), (Int64.max - 1, .streamDiffers, ["m-0"]),
        (-1, .connection, []), (Int64.min, .connection, []),
    ])
    func aSequenceNumberOfTheServerDoesNotOverflow(last: Int64, error: StreamError.Code, positions: [String])
        throws
    {
        try bench.store(2)
        let settings = try bench.create()
        try bench.run(bench.publisher(settings))
        bench.stream.messages = []
        bench.stream.last = last
        #expect(code { try bench.run(try bench.publisher(settings)) } == error)
        #expect(bench.stream.positions == positions)
    }

    @Test func anUnexpectedAcknowledgementIsIgnored() throws {
        var window = PublishWindow()
        #expect(window.receive(StreamAnswer(number: .max, body: nil)) == .stale)
        let numbers = (1...3).compactMap {
            window.add(event: $0, after: $0, bytes: 1, needsAcknowledgement: true, at: 0)
        }
        let stored = Array(#"{"stream":"E","seq":2}"#.utf8)
        for number in [0, numbers[2] + 1, UInt64(Int64.max), UInt64(Int64.max) + 2, .max] {
            #expect(window.receive(StreamAnswer(number: number, body: stored)) == .stale)
        }
        #expect(
            window.receive(StreamAnswer(number: numbers[0], body: stored)) == .stored(event: 1, message: 2))
    }

    @Test func eachValueOfAnEventIsOneTokenOfTheSubject() {
        let template = SubjectTemplate("c.{app}.{type}.{user}", appID: "a.b")
        #expect(template?.subject(type: "x.>* y", user: "u") { $0 + "!" } == "c.a%2eb.x%2e%3e%2a%20y.u!")
        #expect(template?.subject(type: "", user: nil) { $0 } == "c.a%2eb.%.none")
        #expect(template?.filter == "c.a%2eb.*.*")
        for wrong in [
            "", "{app}", "a..b", "a.", ".a", "a.>", "a.*", "a b", "$JS.a", "_INBOX.a", "a.{name}", "a.{app}x",
        ] {
            #expect(SubjectTemplate(wrong, appID: "shop") == nil, "\(wrong)")
        }
    }

    @Test func anIDWithALineBreakAddsNoHeaderField() throws {
        let event = StoredEvent(
            sequence: 1, messageID: "a\r\nNats-Rollup: all", type: "track", userID: nil, anonymousID: nil,
            name: nil, timestampMilliseconds: 1, receivedMilliseconds: 1,
            proof: EventProof(
                verdict: .verified, dialect: "native", requestID: "r", claims: #"{"plan":"é\r\n"}"#), body: []
        )
        let settings = try bench.create()
        let made = MessageTemplate(of: settings, try #require(settings.template)).make(
            event, try bench.storage.log.positions().of("shop"), after: 0)
        #expect(made.headers.allSatisfy { !$0.value.utf8.contains(10) && !$0.value.utf8.contains(13) })
        #expect(made.headers.contains { $0.value == "a%0d%0aNats-Rollup:%20all" })
        #expect(made.headers.contains { $0 == ("Countersign-Claims", #"{"plan":"%c3%a9\r\n"}"#) })
    }
}
