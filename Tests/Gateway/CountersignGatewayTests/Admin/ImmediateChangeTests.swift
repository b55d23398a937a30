import CountersignCore
import CountersignGatewayTesting
import CountersignTesting
import Foundation
import GatewayHTTP
import GatewayIngest
import GatewayTestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayAdmin
@testable import GatewayModel
@testable import GatewayStorage

/// A change is in effect once its response arrives or its command ends.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct ImmediateChangeTests {
    private let bench: AdminBench

    init() throws { bench = try AdminBench() }

    private func send(_ access: String) throws -> Int? {
        try bench.client().post(
            batch(trackEvent(UUID().uuidString, user: "ada")),
            headers: ["X-Write-Key": bench.writeKey, "Authorization": "Bearer " + access])?.status
    }

    /// Opens a session. Returns its id and an access token.
    private func open(_ owner: [String: String]) throws -> (session: String, access: String) {
        let opened = try bench.ask("POST", "apps/shop/sessions", #"{"user":"ada"}"#, owner)
        #expect(opened.status == 201)
        let exchanged = try bench.client().post(
            #"{"refresh_token":"\#(opened.json["refresh_token"] as? String ?? "")"}"#,
            path: "/api/refresh_token", headers: ["Content-Type": "application/json"])
        return (
            try #require(opened.json["id"] as? String),
            try #require(exchanged?.json["accessToken"] as? String)
        )
    }

    @Test func anEndedSessionIsRejectedAtOnce() throws {
        try bench.apps.setEnforcement(.required, for: "shop")
        try bench.gateway.refreshApps()
        let owner = try bench.token("admin")
        for _ in 1...5 {
            let (session, access) = try open(owner)
            #expect(try send(access) == 200)
            #expect(try bench.ask("DELETE", "apps/shop/sessions/\(session)", nil, owner).status == 204)
            #expect(try send(access) == 401)
        }
    }

    @Test func tokensOfACompromisedSigningKeyAreRejectedAtOnce() throws {
        try bench.apps.setEnforcement(.required, for: "shop")
        try bench.gateway.refreshApps()
        let owner = try bench.token("admin")
        for _ in 1...2 {
            let (_, access) = try open(owner)
            #expect(try send(access) == 200)
            let rotated = try bench.ask("POST", "signing-keys", #"{"compromised":true}"#, owner)
            #expect(rotated.status == 201, "\(rotated.body)")
            #expect(try send(access) == 401)
        }
    }

    /// Delivery does not wait for the runner's next check, which is due once a second.
    @Test func aNewWebhookIsDeliveredToAtOnce() throws {
        let owner = try bench.token("admin")
        try bench.store(batch(trackEvent("m")))
        try bench.place.waitForTransactions()
        let made = try bench.ask(
            "POST", "apps/shop/webhooks",
            #"{"url":"https://127.0.0.1:1/","allow_private":true,"from":"start"}"#, owner)
        let id = try #require(made.json["id"] as? String)
        bench.gateway.waitForWebhooks()
        let shown = try bench.ask("GET", "apps/shop/webhooks/\(id)", nil, owner)
        #expect(shown.json["failures"] as? Int == 1)
    }

    /// A command on the gateway's data directory, without a connection to the gateway.
    @Test func aCommandEndsWhenTheRunningGatewayHasLoadedItsChange() throws {
        let late = Lock(0)
        let local = try LocalAdministration(
            storage: bench.place.open(), backupFolder: nil, isLate: { late.withLock { $0 += 1 } },
            now: { [clock = bench.clock] in clock.now })
        func post(_ path: String, _ body: String) throws -> [String: Any] {
            let response = local.answer("POST", path, query: nil, ifMatch: nil, body: Array(body.utf8))
            #expect(response.status == 201)
            return try #require(try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
        }
        for number in 1...5 {
            let made = try post(
                "/apps/shop/clients", #"{"name":"warehouse \#(number)","grants":["client_credentials"]}"#)
            let id = try #require(made["client_id"] as? String)
            let secret = try #require(made["client_secret"] as? String)
            let basic = Data("\(id):\(secret)".utf8).base64EncodedString()
            let answer = try bench.client().post(
                "grant_type=client_credentials", path: "/oauth/token",
                headers: [
                    "Content-Type": "application/x-www-form-urlencoded", "Authorization": "Basic " + basic,
                ])
            #expect(answer?.status == 200)
        }
        let key = try post("/apps/shop/write-keys", #"{"description":"web"}"#)["write_key"] as? String
        let sent = try bench.client().post(batch(trackEvent("m")), headers: ["X-Write-Key": key ?? ""])
        #expect(sent?.status == 200)
        #expect(late.withLock { $0 } == 0)
    }

    /// The change comes after the gateway has loaded the apps, and before it starts.
    @Test(.onSQLite("the signal file between its commands and its gateway"))
    func aCommandDuringTheStartWaitsUntilItsChangeIsLoaded() throws {
        let place = try TestStorage(.app)
        let gateway = try Gateway(
            configuration: place.configuration, now: { Date() },
            dialects: { _ in
                #expect(!ChangeSignal.waitForGateway(place.folder, seconds: 0))
                return []
            })
        defer { gateway.stop() }
        // The file has the number of requests, and the number of the last request whose changes were loaded.
        let numbers = try Data(contentsOf: URL(fileURLWithPath: place.folder + "/gateway.changes"))
        #expect(Array(numbers) == [1] + [UInt8](repeating: 0, count: 15))
        try gateway.startInProcess()
        #expect(ChangeSignal.waitForGateway(place.folder))
    }

    @Test(.onSQLite("the signal file between its commands and its gateway"))
    func aCommandDoesNotWaitForAStoppedOrUnresponsiveGateway() throws {
        let place = try TestStorage(.app)
        // No gateway has run here.
        #expect(ChangeSignal.waitForGateway(place.folder))
        let directory = try DataDirectory(path: place.folder)
        let signal = try ChangeSignal(in: directory)
        // A gateway has run and ended.
        #expect(ChangeSignal.waitForGateway(place.folder))
        #expect(signal.asked == 0)
        let lock = try directory.lock()
        // A gateway is running and cannot load changes.
        #expect(!ChangeSignal.waitForGateway(place.folder, seconds: 0))
        #expect(signal.asked == 1 && signal.loaded == 0)
        signal.noteLoaded(2)
        #expect(ChangeSignal.waitForGateway(place.folder, seconds: 0))
        #expect(signal.asked == 2)
        // The next gateway loads everything at start, so all requests count as loaded.
        #expect(try ChangeSignal(in: directory).loaded == 2)
        withExtendedLifetime(lock) {}
    }
}
