import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import CountersignCLI

/// Confirmations of `app retention`, `key delete`, `key unfollow` and `app delete`.
@Suite(.timeLimit(.minutes(5)))
struct ConfirmationTests {
    private let fixture: GatewayFixture

    init() throws { fixture = try GatewayFixture() }

    private func run(_ line: String) async -> (code: ExitCode, io: RecordedIO) {
        let io = RecordedIO(environment: fixture.place.environment)
        return (await io.run(line: line), io)
    }

    private func store() throws {
        let answer = try fixture.client().send(
            "POST", "/v1/batch", ["X-Write-Key": fixture.writeKey, "Content-Type": "application/json"],
            Array(#"{"batch":[{"type":"track","event":"Order","messageId":"1","anonymousId":"d"}]}"#.utf8))
        #expect(answer?.status == 200)
    }

    @Test func aRetentionThatDeletesEventsNowNeedsConfirmation() async throws {
        // No stored event would be deleted, so no confirmation is needed.
        #expect(await run("app retention shop --bytes 10GB").code == .done)
        try store()
        #expect(await run("app retention shop --days 1").code == .done)
        let (code, io) = await run("app retention shop --bytes 1")
        #expect(code == .usage)
        #expect(io.talk.contains("delete the oldest events of shop, at once, until no more than 1B of them"))
        #expect(await run("app retention shop").io.output.contains("10GB"))
        // A looser limit needs no confirmation.
        #expect(await run("app retention shop --bytes 20GB").code == .done)
        #expect(await run("app retention shop --bytes 1 --confirm kiosk").code == .usage)
        #expect(await run("app retention shop --bytes 1 --confirm shop").code == .done)
    }

    @Test func deletingTheLastKeyOfAnAppThatRequiresTokensNeedsConfirmation() async throws {
        let other = try SharedKeys.stranger().publicKey.pem
        let second = try fixture.apps.addKey(other, description: "", to: "shop").id
        #expect(await run("key delete shop \(second)").code == .done)
        let last = try #require(fixture.apps.apps().first?.keys.first?.id)
        let (code, io) = await run("key delete shop \(last)")
        #expect(code == .usage)
        #expect(
            io.talk.contains(
                "delete the last key of shop, whose tokens are required: every user's events are rejected"))
        // The gateway may be unable to fetch the keys that an app follows.
        #expect(await run("key follow shop https://id.example/jwks.json").code == .done)
        let question = await run("key delete shop \(last)").io.talk
        #expect(question.contains("only the keys that it follows verify tokens"))
        try fixture.apps.setEnforcement(.disabled, for: "shop")
        #expect(await run("key delete shop \(last)").code == .done)
    }

    @Test func unfollowingTheLastKeysOfAnAppThatRequiresTokensNeedsConfirmation() async throws {
        let own = try #require(fixture.apps.apps().first?.keys.first?.id)
        #expect(await run("key follow shop https://id.example/a.json").code == .done)
        // The app has a key of its own.
        #expect(await run("key unfollow shop").code == .done)
        for name in ["a", "b"] {
            #expect(await run("key follow shop https://id.example/\(name).json").code == .done)
        }
        #expect(await run("key delete shop \(own) --confirm shop").code == .done)
        // The other source has no keys either.
        #expect(await run("key unfollow shop https://id.example/a.json").code == .usage)
        #expect(await run("key unfollow shop https://id.example/a.json --confirm shop").code == .done)
        for line in ["key unfollow shop", "key unfollow shop https://id.example/b.json"] {
            let (code, io) = await run(line)
            #expect(code == .usage)
            #expect(io.talk.contains("the last keys of shop, whose tokens are required"), "\(io.talk)")
        }
        #expect(await run("key list shop").io.output.contains("https://id.example/b.json"))
        #expect(await run("key unfollow shop --confirm shop").code == .done)
        // No keys are left, so no confirmation is needed.
        #expect(await run("key unfollow shop").code == .done)
    }

    @Test func deletingAMissingAppAsksNoQuestion() async {
        let (code, io) = await run("app delete shoop")
        #expect(code == .notFound)
        #expect(io.talk.contains("countersign app list"))
    }
}
