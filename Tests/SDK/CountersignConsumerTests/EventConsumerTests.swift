import CountersignConsumer
import CountersignTesting
import CountersignTransport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(5)))
struct EventConsumerTests {
    private let clock = ManualClock()

    @Test func aBatchHasTheMembersOfTheAnswer() async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.batch(GatewayScript.event(1), GatewayScript.event(2)), clock: clock)
        var worker = try GatewayScript.consumer(transport, clock).makeAsyncIterator()
        let batch = try #require(try await worker.next())
        #expect(batch.events.map(\.sequence) == [1, 2])
        #expect(batch.partition == 2)
        #expect(batch.position == "p9")
        let event = try #require(batch.events.first)
        #expect(event.verdict == .verified)
        #expect(event.userID == "user-1")
        #expect(event.position == "p1")
        #expect(event.timestamp == Date(timeIntervalSince1970: 1))
        #expect(event.received == Date(timeIntervalSince1970: 1.5))
        #expect(event.anonymousID == nil)
        let request = try #require(transport.requests.first)
        #expect(request.url.path == "/base/v1/apps/shop/consumers/billing/poll")
        #expect(request.header("Authorization") == "Bearer csa_secret")
        #expect(GatewayScript.text(request) == #"{"lease_seconds":60,"limit":100,"wait":30}"#)
        #expect(request.timeout > 30, "longer than the gateway waits")
    }

    @Test(
        arguments: [
            #"{"z":1.10,"a":1e400, "body":{"events":[{"body":1}]} ,"é":"\u0000\"}]"}"#,
            #"{"a":"\\"}"#, "null", "{}", "{ }",
            String(repeating: "[", count: 2_000) + String(repeating: "]", count: 2_000),
        ])
    func aBodyKeepsItsBytes(body: String) async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.batch(GatewayScript.event(1, body: body), GatewayScript.event(2)),
            clock: clock)
        var worker = try GatewayScript.consumer(transport, clock).makeAsyncIterator()
        let batch = try #require(try await worker.next())
        #expect(String(decoding: batch.events[0].body, as: UTF8.self) == body)
        #expect(batch.events[1].messageID == "m-2")
    }

    @Test func noEventIsAcknowledgedBeforeTheAppAcknowledges() async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.batch(GatewayScript.event(1)),
            GatewayScript.batch(GatewayScript.event(2), lease: "l-2"), clock: clock)
        var worker = try GatewayScript.consumer(transport, clock).makeAsyncIterator()
        let first = try #require(try await worker.next())
        let second = try #require(try await worker.next())
        #expect(GatewayScript.names(transport) == ["poll", "poll"])
        #expect(try await second.acknowledge())
        #expect(try await first.acknowledge())
        #expect(GatewayScript.names(transport) == ["poll", "poll", "ack", "ack"])
        #expect(
            transport.requests.suffix(2).map(GatewayScript.text) == [
                #"{"lease":"l-2"}"#, #"{"lease":"l-1"}"#,
            ])
    }

    @Test func aDroppedBatchIsReleasedBeforeTheNextPoll() async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.batch(GatewayScript.event(1)), GatewayScript.batch(GatewayScript.event(1)),
            clock: clock)
        let consumer = try GatewayScript.consumer(transport, clock, fraction: 1)
        let worker = Task {
            var batches = consumer.makeAsyncIterator()
            _ = try await batches.next()?.events.count
            return try await batches.next()?.events.count
        }
        #expect(
            await clock.waitForSleeper() == clock.uptime + 0.5, "the same batch is not polled in a busy loop")
        #expect(GatewayScript.names(transport) == ["poll", "release"])
        clock.advance(by: 0.5)
        #expect(try await worker.value == 1)
        #expect(GatewayScript.names(transport).prefix(3) == ["poll", "release", "poll"])
    }

    @Test func aPollWaitsUntilReleasedEventsAreFree() async throws {
        let clock = clock
        let transport = ScriptedTransport { request in
            if request.url.lastPathComponent == "poll" { return GatewayScript.batch(GatewayScript.event(1)) }
            if request.url.lastPathComponent == "release" { try await clock.sleep(until: clock.uptime + 1) }
            return GatewayScript.done
        }
        let consumer = try GatewayScript.consumer(transport, clock)
        let worker = Task {
            var batches = consumer.makeAsyncIterator()
            _ = try await batches.next()?.events.count
            return try await batches.next()?.acknowledge()
        }
        await clock.waitForSleeper()
        clock.advance(by: 1)
        #expect(try await worker.value == true)
        #expect(GatewayScript.names(transport) == ["poll", "release", "poll", "ack"])
        #expect(transport.overlaps == 0, "during the release, the gateway would find no free event")
    }

    @Test func aCancelledWorkerReleasesItsBatchAndEnds() async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.batch(GatewayScript.event(1)), clock: clock)
        let consumer = try GatewayScript.consumer(transport, clock)
        let worker = Task { [clock] in
            for try await batch in consumer {
                try await clock.sleep(until: .infinity)
                try await batch.acknowledge()
            }
        }
        await clock.waitForSleeper()
        worker.cancel()
        await #expect(throws: CancellationError.self) { try await worker.value }
        await transport.waitForRequests(2)
        #expect(GatewayScript.names(transport) == ["poll", "release"])
    }

    @Test func aWorkerThatWaitsForEventsEndsWhenItIsCancelled() async throws {
        let transport = GatewayScript.transport(clock: clock)
        let consumer = try GatewayScript.consumer(transport, clock)
        let worker = Task {
            var count = 0
            for try await _ in consumer { count += 1 }
            return count
        }
        await clock.waitForSleeper()
        worker.cancel()
        #expect(try await worker.value == 0)
    }

    @Test func workThatIsDoneIsAcknowledgedByACancelledTask() async throws {
        let clock = clock
        let transport = ScriptedTransport { request in
            if request.url.lastPathComponent == "poll" { return GatewayScript.batch(GatewayScript.event(1)) }
            try Task.checkCancellation()
            return GatewayScript.done
        }
        let consumer = try GatewayScript.consumer(transport, clock)
        let worker = Task {
            var batches = consumer.makeAsyncIterator()
            let batch = try await batches.next()
            try? await clock.sleep(until: .infinity)
            return try await batch?.acknowledge()
        }
        await clock.waitForSleeper()
        worker.cancel()
        #expect(try await worker.value == true)
        #expect(GatewayScript.names(transport) == ["poll", "ack"])
    }

    @Test func anExpiredLeaseIsNotAFailure() async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.batch(GatewayScript.event(1)),
            GatewayScript.batch(GatewayScript.event(1), lease: "l-2"), clock: clock,
            other: GatewayScript.rejection(409, "lease_expired"))
        var worker = try GatewayScript.consumer(transport, clock).makeAsyncIterator()
        #expect(try await worker.next()?.acknowledge() == false)
        #expect(try await worker.next() != nil)
        #expect(
            GatewayScript.names(transport).prefix(3) == ["poll", "ack", "poll"],
            "an expired lease is not released")
    }

    @Test func theRestOfAPartlyAcknowledgedBatchCanBeReleased() async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.batch(GatewayScript.event(1), GatewayScript.event(2)), clock: clock)
        var worker = try GatewayScript.consumer(transport, clock).makeAsyncIterator()
        let batch = try #require(try await worker.next())
        #expect(try await batch.acknowledge(through: batch.events[0]))
        await batch.release()
        #expect(
            transport.requests.dropFirst().map(GatewayScript.text)
                == [#"{"lease":"l-1","position":"p1"}"#, #"{"lease":"l-1"}"#])
    }

    @Test func retryAfterOfABusyGatewayIsFollowed() async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.rejection(503, "draining", headers: [("Retry-After", "7")]),
            GatewayScript.rejection(429, "too_many_readers"), GatewayScript.batch(GatewayScript.event(1)),
            clock: clock)
        let consumer = try GatewayScript.consumer(transport, clock, fraction: 1)
        let worker = Task {
            var batches = consumer.makeAsyncIterator()
            return try await batches.next()?.events.count
        }
        #expect(await clock.waitForSleeper() == clock.uptime + 7)
        clock.advance(by: 7)
        #expect(await clock.waitForSleeper() == clock.uptime + 1)
        clock.advance(by: 1)
        #expect(try await worker.value == 1)
    }

    @Test func aGatewayThatCannotBeReachedIsTriedAgain() async throws {
        let transport = ScriptedTransport { _ in throw HTTPTransportError(.cannotConnect, "scripted") }
        let consumer = try GatewayScript.consumer(transport, clock, fraction: 1)
        let worker = Task { try await consumer.first { _ in true } == nil }
        for pause in [0.5, 1, 2, 4, 8, 16, 30, 30] {
            #expect(await clock.waitForSleeper() == clock.uptime + pause)
            clock.advance(by: pause)
        }
        await clock.waitForSleeper()
        worker.cancel()
        #expect(try await worker.value)
    }

    @Test func anAcknowledgementIsRetriedUntilItIsAnswered() async throws {
        let clock = clock
        let answers = Answers([GatewayScript.rejection(503, "storage_unavailable"), GatewayScript.done])
        let transport = ScriptedTransport { request in
            if request.url.lastPathComponent == "poll" { return GatewayScript.batch(GatewayScript.event(1)) }
            return answers.next() ?? GatewayScript.done
        }
        let consumer = try GatewayScript.consumer(transport, clock, fraction: 1)
        let worker = Task {
            var batches = consumer.makeAsyncIterator()
            return try await batches.next()?.acknowledge()
        }
        #expect(await clock.waitForSleeper() == clock.uptime + 0.5)
        clock.advance(by: 0.5)
        #expect(try await worker.value == true)
        #expect(GatewayScript.names(transport) == ["poll", "ack", "ack"])
    }

    @Test func anEmptyAnswerIsFollowedByAPause() async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.nothing, GatewayScript.batch(GatewayScript.event(1)), clock: clock)
        let consumer = try GatewayScript.consumer(transport, clock)
        let worker = Task {
            var batches = consumer.makeAsyncIterator()
            return try await batches.next()?.events.count
        }
        #expect(await clock.waitForSleeper() == clock.uptime + 1)
        clock.advance(by: 1)
        #expect(try await worker.value == 1)
    }

    @Test(
        arguments: [
            (GatewayScript.rejection(401, "unauthenticated"), "unauthenticated"),
            (GatewayScript.rejection(403, "forbidden"), "forbidden"),
            (GatewayScript.rejection(404, "consumer_not_found"), "consumer_not_found"),
            (TransportResponse(status: 404), "unexpected_answer"),
            (TransportResponse(status: 301), "unexpected_answer"),
            (GatewayScript.ok("<html>"), "unexpected_answer"),
            (GatewayScript.ok(#"{"events":[{"body":{}"#), "unexpected_answer"),
            (GatewayScript.ok(#"{"events":[{"body":{}}],"lease":null}"#), "unexpected_answer"),
        ])
    func permanentErrorsAreThrown(answer: TransportResponse, code: String) async throws {
        let transport = GatewayScript.transport(polls: answer, clock: clock)
        var worker = try GatewayScript.consumer(transport, clock).makeAsyncIterator()
        do throws(ConsumerError) {
            _ = try await worker.next()
            Issue.record("nothing was thrown")
        } catch {
            #expect(error.code.rawValue == code)
            #expect(!"\(error)".contains(GatewayScript.token))
        }
    }

    @Test func aMistakeInTheConfigurationIsReportedAtOnce() throws {
        func code(
            _ endpoint: String = "https://g.example", app: String = "shop", token: String = "csa_x",
            name: String = "billing", limit: Int = 1, lease: Int = 5
        ) -> ConsumerError.Code? {
            guard let url = URL(string: endpoint) else { return nil }
            do throws(ConsumerError) {
                _ = try EventConsumer(
                    endpoint: url, app: app, token: token, name: name, limit: limit, leaseSeconds: lease)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(code() == nil)
        #expect(code("ftp://g.example") == .invalidConfiguration)
        #expect(code("https://g.example?x=1") == .invalidConfiguration)
        #expect(code(app: "../x") == .invalidConfiguration)
        #expect(code(app: "..") == .invalidConfiguration)
        #expect(code(token: "a\r\nb") == .invalidConfiguration)
        #expect(code(name: "a/b") == .invalidConfiguration)
        #expect(code(limit: 1_001) == .invalidConfiguration)
        #expect(code(lease: 4) == .invalidConfiguration)
    }
}
