import CountersignConsumer
import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayHTTP
import GatewayModel
import GatewayStorage
import Testing

@testable import CountersignCLI

/// `listen` between a gateway and a receiver that run in this process.
@Suite(.timeLimit(.minutes(5)))
struct ListenTests {
    private let fixture: GatewayFixture
    private let receiver: Receiver
    private let reader: RemoteAdmin
    private let io = RecordedIO()

    init() throws {
        fixture = try GatewayFixture(enforcement: .optional)
        receiver = try Receiver()
        let token = try fixture.apps.apiTokens.create(name: "t", scopes: ["reader"], appID: "shop").text
        reader = try RemoteAdmin(.init(url: "http://127.0.0.1:\(fixture.gateway.port)"), token: token)
    }

    private func store(_ ids: String...) throws {
        for id in ids {
            let body =
                #"{"batch":[{"type":"track","event":"A","messageId":"\#(id)","anonymousId":"a","properties":{"price":1.10}}]}"#
            let headers = ["X-Write-Key": fixture.writeKey, "Content-Type": "application/json"]
            #expect(try fixture.client().send("POST", "/v1/batch", headers, Array(body.utf8))?.status == 200)
        }
        try fixture.place.waitForTransactions()
    }

    /// Runs `listen` until it has printed a line for each of `count` requests.
    private func listen(
        from start: JSONObject = ["from": "start"], batchSize: Int = 100, printsJSON: Bool = false,
        by reader: RemoteAdmin? = nil, until count: Int, whileRunning work: () async throws -> Void = {}
    ) async throws -> Listen {
        let listen = Listen(
            .init(
                app: "shop", webhook: receiver.webhook, start: start, batchSize: batchSize,
                printsJSON: printsJSON),
            admin: reader ?? self.reader, io: io.io, pause: { _ in })
        let running = Task { try await listen.run() }
        defer { running.cancel() }
        try await io.talkText.wait { $0.contains("Waiting for events of shop") }
        try await work()
        try await io.outputText.wait { $0.split(separator: "\n").count >= count }
        running.cancel()
        await #expect(throws: (any Error).self) { try await running.value }
        return listen
    }

    @Test func newEventsAreDeliveredAsSignedWebhooks() async throws {
        try store("before")
        let listen = try await listen(from: [:], until: 1) { try store("m-1") }
        let delivery = try #require(receiver.deliveries.first)
        #expect(receiver.deliveries.count == 1)
        #expect(delivery.type == "events" && delivery.app == "shop" && !delivery.isReplay)
        #expect(delivery.events.map(\.messageID) == ["m-1"])
        #expect(delivery.events[0].position != nil)
        #expect(String(decoding: delivery.events[0].body, as: UTF8.self).contains(#""price":1.10"#))
        #expect(io.output.contains(#/  200  \d+ ms  track A m-1  thanks\u{FFFD}\n/#), "\(io.output)")
        let summary = await listen.summary
        #expect(summary.hasPrefix("Delivered events: 1, requests: 1, failed requests: 0. --position "))
        // The temporary consumer that found the newest position is deleted.
        let consumers = try await reader.send(
            AdminRequest(method: "GET", path: ["apps", "shop", "consumers"], root: "/v1"))
        #expect(consumers.body["items"].elements.isEmpty)
    }

    @Test func aFailedDeliveryIsRetriedWithTheSameID() async throws {
        receiver.answers.withLock { $0 = [500] }
        try store("m-1", "m-2")
        _ = try await listen(printsJSON: true, until: 2)
        let deliveries = receiver.deliveries
        #expect(deliveries.count == 2 && deliveries[0].id == deliveries[1].id)
        #expect(deliveries.map { $0.events.map(\.messageID) } == [["m-1", "m-2"], ["m-1", "m-2"]])
        let rows = io.output.split(separator: "\n").map { JSONValue(parsing: Array($0.utf8)) ?? .null }
        #expect(rows.map { $0["status"] } == [500, 200])
        #expect(rows.map { $0["attempt"] } == [1, 2])
        #expect(rows.map { $0["answer"] } == ["thanks\u{1B}", "thanks\u{1B}"])
        #expect(rows.allSatisfy { $0["message_id"].text == deliveries[0].id && $0["events"] == 2 })
        #expect(io.talk.contains("not delivered: it answered 500; see the receiver's log"))
    }

    @Test func laterEventsWaitForAFailedOne() async throws {
        receiver.answers.withLock { $0 = [200, 500, 302, 200] }
        try store("m-1", "m-2", "m-3")
        _ = try await listen(batchSize: 1, until: 5)
        #expect(
            receiver.deliveries.flatMap { $0.events.map(\.messageID) } == ["m-1", "m-2", "m-2", "m-2", "m-3"])
        #expect(io.talk.contains("redirects are not followed"))
    }

    @Test func aDeliveryThatIsTooLargeIsSplit() async throws {
        receiver.answers.withLock { $0 = [413] }
        try store("m-1", "m-2", "m-3")
        _ = try await listen(until: 3)
        let deliveries = receiver.deliveries.map { $0.events.map(\.messageID) }
        // An accepted delivery raises the size of the next.
        #expect(deliveries == [["m-1", "m-2", "m-3"], ["m-1"], ["m-2", "m-3"]])
        #expect(Set(receiver.deliveries.map(\.id)).count == 3)
    }

    @Test func anUnreachableReceiverIsReportedAndRetried() async throws {
        receiver.stop()
        try store("m-1")
        _ = try await listen(until: 2)
        #expect(io.output.contains("  cannot_connect  "), "\(io.output)")
        #expect(io.talk.contains("start the receiver, or correct --forward-to; trying again in "))
    }

    @Test func listeningContinuesAfterARestartOfTheGateway() async throws {
        try store("m-1")
        let restarted = Lock<Gateway?>(nil)
        defer { restarted.withLock { $0?.stop() } }
        _ = try await listen(until: 2) {
            try await io.outputText.wait { $0.contains("track A m-1") }
            var configuration = fixture.place.configuration
            configuration.port = fixture.gateway.port
            fixture.gateway.stop()
            try await io.talkText.wait { $0.contains("trying again in") }
            let gateway = try Gateway(configuration: configuration)
            try gateway.start()
            restarted.withLock { $0 = gateway }
            try store("m-2")
        }
        #expect(receiver.deliveries.map { $0.events.map(\.messageID) } == [["m-1"], ["m-2"]])
    }

    @Test func missedEventsAreReportedInTheFirstAcceptedBodyOnly() async throws {
        receiver.answers.withLock { $0 = [500] }
        let gateway = try ScriptedGateway(events: 2)
        _ = try await listen(batchSize: 1, by: gateway.reader, until: 3)
        let reports = receiver.deliveries.map {
            String(decoding: $0.body, as: UTF8.self).contains(#""events_missed":true"#)
        }
        #expect(reports == [true, true, false])
        #expect(receiver.deliveries.map { $0.events.map(\.messageID) } == [["m-1"], ["m-1"], ["m-2"]])
    }

    @Test func deletionOfTheTemporaryConsumerIsRetried() async throws {
        let gateway = try ScriptedGateway(events: 1, deletions: [503, 503, 204])
        _ = try await listen(from: [:], by: gateway.reader, until: 1)
        #expect(io.talk.contains("the temporary consumer listen-"), "\(io.talk)")
        #expect(gateway.deletions.withLock { $0 }.isEmpty)
        let down = try ScriptedGateway(events: 1, deletions: Array(repeating: 503, count: 9))
        let listen = Listen(
            .init(app: "shop", webhook: receiver.webhook), admin: down.reader, io: io.io, pause: { _ in })
        await #expect {
            try await listen.run()
        } throws: { error in
            let error = error as? CommandError
            return error?.code == .unavailable && error?.reason.contains("consumer listen-") == true
                && error?.hint?.contains("`countersign consumer delete shop listen-") == true
        }
        #expect(down.deletions.withLock { $0.count } == 5)
    }

    @Test func aServerWithoutTheAPIForClientsIsReportedAsAWrongURL() async throws {
        let gateway = try ScriptedGateway(events: 0, created: 404)
        let listen = Listen(
            .init(app: "shop", webhook: receiver.webhook), admin: gateway.reader, io: io.io, pause: { _ in })
        await #expect {
            try await listen.run()
        } throws: { error in
            (error as? CommandError)?.hint == "is this the gateway's URL for clients?"
        }
    }

    @Test func aTokenWithoutTheScopeReaderIsRejectedWithAdvice() async throws {
        let token = try fixture.apps.apiTokens.create(name: "t", scopes: ["admin"]).text
        let io = RecordedIO(environment: ["COUNTERSIGN_TOKEN": token])
        let server = "http://127.0.0.1:\(fixture.gateway.port)"
        let code = await io.run("listen", "shop", "--forward-to", receiver.webhook.url, "--server", server)
        #expect(code == .notAuthorized)
        #expect(io.talk.contains("create one with the scope reader for it"), "\(io.talk)")
        #expect(io.talk.contains("--scopes reader --app shop"), "\(io.talk)")
    }

    @Test(arguments: [
        ("", "--forward-to needs"), ("localhost:3000", "--forward-to needs"),
        ("ftp://localhost/", "--forward-to needs"), ("http://localhost:1/", "the secret must be whsec_"),
    ])
    func invalidArgumentsAreUsageErrors(url: String, reason: String) async {
        let io = RecordedIO(environment: ["COUNTERSIGN_WEBHOOK_SECRET": "whsec_short"])
        let command = ["listen", "shop", "--data", fixture.dataDirectory]
        #expect(await io.run(arguments: command + (url.isEmpty ? [] : ["--forward-to", url])) == .usage)
        #expect(io.talk.contains(reason))
        #expect(!io.talk.contains("whsec_short"))
    }

    @Test func interruptingListenPrintsASummaryAndDeletesItsToken() async throws {
        let folder = TemporaryFolder()
        let shell = Shell(folder: folder.path, environment: fixture.place.environment)
        let result = try await shell.run(
            """
            mkfifo said
            countersign listen shop --forward-to http://localhost:9/ >secret 2>said & listen=$!
            exec 3<said
            while read -r line <&3; do
                case "$line" in Waiting*) break ;; esac
            done
            kill -INT $listen
            cat <&3
            cat secret
            wait $listen
            """)
        #expect(result.status == 0, "\(result.output)")
        #expect(result.output.contains("Delivered events: 0, requests: 0, failed requests: 0. --position "))
        #expect(result.output.contains(#/\nwhsec_\S{44}\n/#), "\(result.output)")
        #expect(try fixture.apps.apiTokens.all().allSatisfy { $0.name != "listen" })
    }
}

/// A server with the parts of the gateway's API that `listen` reads. Its first page reports missed events.
private final class ScriptedGateway: Sendable {
    let reader: RemoteAdmin
    /// The statuses of the next deletions of a consumer.
    let deletions: Lock<[Int]>
    private let server: HTTPServer

    init(events: Int, created: Int = 201, deletions statuses: [Int] = []) throws {
        let (deletions, isFirst) = (Lock(statuses), Lock(true))
        self.deletions = deletions
        server = HTTPServer(limits: GatewayLimits(), observer: ObserverGroup(members: [])) { request in
            switch request.method {
            case "POST":
                let body: JSONValue = ["partitions": [["position": "p0"]]]
                return .answer(HTTPResponse(status: created, body: created == 201 ? body.bytes : []))
            case "DELETE":
                let status = deletions.withLock { $0.isEmpty ? 204 : $0.removeFirst() }
                return .answer(HTTPResponse(status: status, body: []))
            default:
                let isFirst = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                let lines = (0..<events).map { Self.event($0 + 1) + "\n" }.joined()
                let headers: [(name: String, value: String)] = [
                    ("X-Countersign-Next", "p9"), ("X-Countersign-Events-Missed", String(isFirst)),
                ]
                return .answer(
                    HTTPResponse(status: 200, headers: headers, body: isFirst ? Array(lines.utf8) : []))
            }
        }
        let port = try server.start(host: "127.0.0.1", port: 0)
        reader = try RemoteAdmin(.init(url: "http://127.0.0.1:\(port)"), token: "csa_t")
    }

    private static func event(_ sequence: Int) -> String {
        #"""
        {"body":{"type":"track"},"anonymous_id":"a","code":null,"dialect":"native","enforcement":"optional",\#
        "key_id":null,"message_id":"m-\#(sequence)","name":"A","position":"p\#(sequence)","received_ms":1500,\#
        "request_id":null,"seq":\#(sequence),"timestamp_ms":1000,"token_id":null,"type":"track","user_id":null,\#
        "verdict":"anonymous"}
        """#
    }

    deinit { server.stop(graceSeconds: 0) }
}

/// A server that verifies deliveries with the SDK and answers with the given statuses, then 200.
private final class Receiver: Sendable {
    let webhook: PushWebhook
    let answers: Lock<[Int]>
    private let verified: Lock<[CountersignConsumer.WebhookDelivery]>
    private let server: HTTPServer

    var deliveries: [CountersignConsumer.WebhookDelivery] { verified.withLock { $0 } }

    init() throws {
        let secret = PushWebhook.newSecret()
        let verifier = try WebhookVerifier(secrets: [secret])
        let (answers, verified) = (Lock<[Int]>([]), Lock<[CountersignConsumer.WebhookDelivery]>([]))
        server = HTTPServer(limits: GatewayLimits(), observer: ObserverGroup(members: [])) { request in
            do {
                let fields = [
                    "webhook-id": request.header("webhook-id"),
                    "webhook-timestamp": request.header("webhook-timestamp"),
                    "webhook-signature": request.header("webhook-signature"),
                ]
                let delivery = try verifier.verify(Data(request.body)) { fields[$0] ?? nil }
                verified.withLock { $0.append(delivery) }
                let status = answers.withLock { $0.isEmpty ? 200 : $0.removeFirst() }
                let body = Array("thanks\u{1B}".utf8)
                return .answer(HTTPResponse(status: status, headers: [("Location", "/")], body: body))
            } catch {
                Issue.record(error)
                return .answer(HTTPResponse(status: 401, headers: [], body: []))
            }
        }
        let port = try server.start(host: "127.0.0.1", port: 0)
        webhook = try PushWebhook(
            url: "http://localhost:\(port)/hook", secret: secret, allowsPrivateAddresses: true)
        self.answers = answers
        self.verified = verified
    }

    func stop() { server.stop(graceSeconds: 0) }

    deinit { stop() }
}
