import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import CountersignCLI

/// `countersign doctor` for a remote gateway, and its findings about apps.
@Suite(.timeLimit(.minutes(5)))
struct AdminDoctorTests {
    private let folder = TemporaryFolder()

    /// Answers each path with the given JSON; other paths with an empty list, and write keys with one key.
    private struct Answers: AdminClient {
        var location = "https://collect.example"
        var answers: JSONObject

        func send(_ request: AdminRequest) async throws -> AdminAnswer {
            let items: JSONValue = request.path.last == "write-keys" ? [["id": "w"]] : []
            let body = answers[request.encodedPath] ?? ["items": items, "next": .null]
            return try AdminAnswer(status: 200, tag: nil, bytes: body.bytes)
        }
    }

    private static let shop: JSONValue = [
        "items": [["id": "shop", "enforcement": "required", "keys": 1]], "next": .null,
    ]

    private func page(_ item: JSONValue) -> JSONValue { ["items": [item], "next": .null] }

    private func run(_ flags: String..., environment: [String: String] = [:]) async -> (ExitCode, String) {
        let io = RecordedIO(environment: ["HOME": folder.path].merging(environment) { $1 })
        let code = await io.run(arguments: ["doctor"] + flags)
        return (code, io.output + io.talk)
    }

    @Test func aRemoteGatewayIsCheckedOverTheAdminAPI() async throws {
        let fixture = try GatewayFixture()
        let url = "http://127.0.0.1:\(fixture.gateway.port)"
        let reader = try fixture.apps.apiTokens.create(name: "reader", scopes: ["read"]).text
        let (code, text) = await run("--server", url, environment: ["COUNTERSIGN_TOKEN": reader])
        #expect(code == .done, "\(text)")
        for line in [
            "ok    gateway: \(url) answers", "ok    version: ", "ok    clock: ", "ok    storage: ",
            "app shop: ",
        ] {
            #expect(text.contains(line), "\(text)")
        }
        #expect(!text.contains("data directory"))
        #expect(!text.contains(reader))
    }

    @Test func theGatewayOfTheCurrentProfileIsChecked() async throws {
        let fixture = try GatewayFixture()
        let url = "http://127.0.0.1:\(fixture.gateway.port)"
        let environment = ["HOME": folder.path]
        let token = try fixture.apps.apiTokens.create(name: "reader", scopes: ["read"]).text
        let added = RecordedIO(environment: environment, input: token)
        #expect(await added.run("profile", "add", "live", "--server", url) == .done)
        #expect(await RecordedIO(environment: environment).run("profile", "use", "live") == .done)
        let (code, text) = await run()
        #expect(code == .done, "\(text)")
        #expect(text.contains("gateway: \(url) answers"))
    }

    @Test func anUnreachableGatewayIsAFailedFindingInEveryFormat() async throws {
        let other = try GatewayFixture()
        let url = "http://127.0.0.1:\(other.gateway.port)"
        let rejected = await run("--server", url, "--json", environment: ["COUNTERSIGN_TOKEN": "csa_x"])
        #expect(rejected.0 == .notAuthorized)
        #expect(rejected.1.contains(#""outcome":"failed""#), "\(rejected.1)")
        other.gateway.stop()
        let gone = await run("--server", url, environment: ["COUNTERSIGN_TOKEN": "csa_x"])
        #expect(gone.0 == .unavailable)
        #expect(gone.1.contains("FAIL  gateway: the gateway at \(url) does not answer"), "\(gone.1)")
    }

    @Test func serverAndConfigTogetherAreAUsageError() async throws {
        let file = try folder.write("{}", to: "gateway.json")
        let (code, text) = await run(
            "--server", "http://127.0.0.1:1", "--config", file, environment: ["COUNTERSIGN_TOKEN": "csa_x"])
        #expect(code == .usage)
        #expect(text.contains("--config is for a data directory"))
    }

    @Test(arguments: [
        (checks: true, seconds: 0.0, outcome: [Finding.Outcome.ok, .ok, .ok]),
        (false, 0, [.ok, .ok, .failed]), (true, 20, [.ok, .warning, .ok]), (true, -40, [.ok, .failed, .ok]),
    ])
    func theGatewaysOwnFindingsAreShown(
        checks: Bool, seconds: Double, outcome: [Finding.Outcome]
    ) async throws {
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        let overview: JSONValue = [
            "version": .string(countersignVersion),
            "now_ms": .integer(Int64((1_800_000_000 + seconds) * 1000)),
            "ready": [
                "ok": .bool(checks), "checks": [["name": "disk", "ok": .bool(checks), "detail": "d"]],
            ],
            "warnings": [
                ["code": "clock", "text": "One clock is wrong."],
                ["code": "no_key", "app": "shop", "text": "x"],
            ],
        ]
        let doctor = AdminDoctor(
            admin: Answers(answers: ["/overview": overview, "/apps": Self.shop]), now: { now })
        let found = await doctor.gateway()
        #expect(
            ["version", "clock", "disk"].map { name in found.first { $0.name == name }?.outcome } == outcome)
        // Warnings without an app are findings. The checks of apps find the others.
        #expect(found.contains { $0.outcome == .warning && $0.detail == "One clock is wrong." })
        #expect(!found.contains { $0.detail == "x" })
        #expect(found.last?.detail == "required, 1 key")
    }

    @Test func eachFaultOfAnAppIsAFindingWithItsRemedy() async throws {
        for (path, item, detail, remedy) in [
            ("keys", ["id": "k", "kty": .null], "the key k cannot be used", "countersign key delete shop k"),
            (
                "webhooks", ["id": "w", "state": "paused", "failures": 0], "the webhook w is paused",
                "countersign webhook resume shop w"
            ),
            (
                "webhooks", ["id": "w", "state": "failing", "failures": 3, "reason": "it answered 500"],
                "the webhook w fails: it answered 500", "countersign webhook deliveries shop w"
            ),
            (
                "streams", ["name": "s", "state": "failing", "reason": "no server"],
                "the stream s fails: no server", "countersign stream show shop s"
            ),
            (
                "streams", ["name": "s", "state": "paused"], "the stream s is paused",
                "countersign stream resume shop s"
            ),
            (
                "streams", ["name": "s", "state": "active", "events_missed": true], "the stream s has missed",
                "countersign stream show shop s"
            ),
            (
                "consumers", ["name": "c", "events_missed": true], "the consumer c has missed",
                "countersign consumer seek shop c"
            ),
            (
                "consumers",
                ["name": "c", "state": "active", "oldest_unread_ms": 1_000, "lag_events": 1],
                "the consumer c is 1 event behind", "countersign consumer show shop c"
            ),
            (
                "webhooks", ["id": "w", "state": "active", "oldest_unread_ms": 1_000, "lag_events": 2],
                "the webhook w is 2 events behind", "countersign webhook show shop w"
            ),
            (
                "files", ["state": "failing", "enabled": true, "reason": "the disk is full"],
                "the hourly event files fail: the disk is full", "countersign files show shop"
            ),
            (
                "files",
                ["state": "active", "enabled": true, "oldest_unread_ms": .integer(.min), "lag_events": 7],
                "the hourly event files are 7 events behind", "countersign files show shop"
            ),
        ] as [(String, JSONValue, String, String)] {
            let found = try await AdminDoctor(
                admin: Answers(answers: [
                    "/apps": Self.shop, "/apps/shop/\(path)": path == "files" ? item : page(item),
                ])
            ).apps()
            let only = try #require(found.first)
            #expect(found.count == 1)
            #expect(only.name == "app shop")
            #expect(only.outcome == (path == "keys" ? .failed : .warning))
            #expect(only.detail.hasPrefix(detail), "\(only.detail)")
            #expect(try #require(only.remedy).hasPrefix(remedy), "\(only.remedy ?? "")")
        }
        for (path, hours, isLate) in [
            ("webhooks", 1, false), ("webhooks", 3, true), ("consumers", 47, false), ("consumers", 49, true),
        ] as [(String, Int64, Bool)] {
            let way: JSONValue = [
                "id": "w", "name": "w", "state": "active",
                "oldest_unread_ms": .integer(1_800_000_000_000 - hours * 3_600_000),
            ]
            let doctor = AdminDoctor(
                admin: Answers(answers: ["/apps": Self.shop, "/apps/shop/\(path)": page(way)]),
                now: { Date(timeIntervalSince1970: 1_800_000_000) })
            #expect(try await doctor.apps().first?.outcome == (isLate ? .warning : .ok), "\(path) \(hours)")
        }
        let unused: JSONValue = ["state": "paused", "enabled": false, "events_missed": true]
        let healthy = try await AdminDoctor(
            admin: Answers(answers: ["/apps": Self.shop, "/apps/shop/files": unused])
        ).apps()
        #expect(healthy.map(\.outcome) == [.ok])
        let source: JSONValue = ["sources": [["url": "https://keys.example/", "problem": "404"]]]
        let found = try await AdminDoctor(
            admin: Answers(answers: ["/apps": Self.shop, "/apps/shop/key-source": source])
        ).apps()
        #expect(
            found.map(\.detail) == [
                "the keys that the app follows at https://keys.example/ cannot be fetched: 404"
            ])
    }

    @Test func anAppWithoutAWriteKeyFails() async throws {
        let empty: JSONValue = ["items": [], "next": .null]
        let found = try await AdminDoctor(
            admin: Answers(answers: ["/apps": Self.shop, "/apps/shop/write-keys": empty])
        ).apps()
        #expect(found.map(\.outcome) == [.failed])
        #expect(found.map(\.detail) == ["there is no write key, so no app can send"])
        #expect(found.map(\.remedy) == ["countersign write-key create shop"])
    }

    @Test func anAppThatChecksTokensWithoutAKeyIsReported() async throws {
        func look(_ enforcement: String, _ features: JSONValue = []) async throws -> Finding? {
            let app: JSONValue = [
                "id": "shop", "enforcement": .string(enforcement), "keys": 0, "features": features,
            ]
            return try await AdminDoctor(admin: Answers(answers: ["/apps": page(app)])).apps().first
        }
        #expect(try await look("optional")?.outcome == .warning)
        #expect(try await look("disabled")?.outcome == .ok)
        let follower = try await look("required", ["key_sources"])
        #expect(follower?.detail == "required, 0 keys, and the keys of a provider")
        let none = try await AdminDoctor(admin: Answers(answers: [:])).apps()
        #expect(none.map(\.remedy) == ["countersign app create shop"])
    }
}
