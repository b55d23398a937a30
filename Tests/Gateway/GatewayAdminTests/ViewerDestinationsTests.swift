import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

/// Viewers see no path or query of a URL for events, alerts or keys, because it is often the URL's only secret.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct ViewerDestinationsTests {
    private let bench: AdminBench

    init() throws {
        bench = try AdminBench()
        let any = try bench.token("admin").merging(["If-Match": "*"]) { $1 }
        func send(_ method: String, _ path: String, _ body: String) throws {
            let answer = try bench.ask(method, "apps/shop/" + path, body, any)
            #expect([200, 201, 202].contains(answer.status), "\(answer.body)")
        }
        let url = "https://hooks.example/T0/s3cr3t?key=s3cr3t"
        try send("PUT", "webhook", #"{"url":"\#(url)"}"#)
        try send("PUT", "key-source", #"{"url":"\#(url)"}"#)
        try send("PUT", "project", #"{"token":"shop","customer_tokens":"off","webhook":{"url":"\#(url)"}}"#)
        try send("POST", "webhooks", #"{"url":"\#(url)","name":"s3cr3t-name"}"#)
        try send(
            "POST", "sinks",
            #"{"name":"out","servers":"tls://127.0.0.1:1","stream":"E","ca_file":"/etc/s3cr3t/ca","nkey":"UABC","nkey_seed_file":"/etc/s3cr3t/seed"}"#
        )
        try send("POST", "consumers", #"{"name":"billing","filter":{"name":"s3cr3t-name"}}"#)
    }

    /// The path of a route with the ids of existing objects.
    private func path(_ template: String) throws -> String {
        let hook = try #require(try bench.apps.webhooks.all(of: "shop").first).id
        let id = template.contains("webhooks") ? hook : "1"
        return template.replacing("{app}", with: "shop").replacing("{id}", with: id)
            .replacing("{name}", with: template.contains("sinks") ? "out" : "billing")
            .replacing("{kind}", with: "in-app-message").replacing("{user}", with: "u-aaaaaaaa").dropFirst()
            .description
    }

    @Test func viewersSeeNoPathOrQueryOfADestination() throws {
        let reader = try bench.token("read")
        var answered = 0
        for (route, role) in AdminAccessTests.roles where route.hasPrefix("GET ") && role == .viewer {
            let template = String(route.dropFirst("GET ".count))
            if template.contains("live") { continue }
            let answer = try bench.ask("GET", try path(template), nil, reader)
            if answer.status == 200 { answered += 1 }
            #expect(!answer.body.contains("s3cr3t"), "\(route): \(answer.body)")
        }
        #expect(answered > 25)
    }

    @Test(arguments: ["webhook", "key-source", "project", "webhooks", "webhooks/{id}"])
    func aViewerSeesTheOriginAndOthersTheWholeURL(template: String) throws {
        let path = try "apps/shop/" + self.path("/" + template)
        let masked = try bench.ask("GET", path, nil, bench.token("read")).body
        #expect(masked.contains("https://hooks.example/…#"), "\(masked)")
        for scope in ["write", "admin"] {
            let whole = try bench.ask("GET", path, nil, bench.token(scope)).body
            #expect(whole.contains("https://hooks.example/T0/s3cr3t?key=s3cr3t"), "\(whole)")
        }
    }

    @Test func viewersSeeThatAStreamHasFilesButNotWhere() throws {
        let masked = try bench.ask("GET", "apps/shop/streams/out", nil, bench.token("read")).json
        #expect(masked["servers"] as? String == "tls://127.0.0.1:1")
        #expect(masked["ca_file"] as? String == "…" && masked["nkey_seed_file"] as? String == "…")
        #expect(masked["credentials_file"] is String == false)
        let whole = try bench.ask("GET", "apps/shop/streams/out", nil, bench.token("write")).json
        #expect(whole["ca_file"] as? String == "/etc/s3cr3t/ca")
    }

    /// The reason may have paths of the gateway's files.
    @Test func viewersSeeThatADeliveryFailsButNotWhy() throws {
        let consumers = try bench.place.open().openConsumers(with: nil) { 0 }
        let stream = try #require(try bench.apps.streams.all(of: "shop").first).consumer
        for (id, path) in [(FileSettings.consumer(of: "shop"), "files"), (stream, "streams/out")] {
            var progress = DeliveryProgress(committed: 0)
            (progress.failures, progress.failure) = (1, DeliveryFailure("storage", "cannot write /s3cr3t"))
            try consumers.follow(id, holdDays: nil, from: progress)
            for (scope, reason) in [("read", nil), ("write", "cannot write /s3cr3t")] {
                let shown = try bench.ask("GET", "apps/shop/" + path, nil, bench.token(scope)).json
                #expect(shown["error"] as? String == "storage" && shown["reason"] as? String == reason)
            }
        }
    }

    /// The operators' ETag is a hash of the setting with its URL, so it would confirm a guess of the URL.
    @Test func viewersGetAnotherETagThanOperators() throws {
        for path in ["webhook", "key-source", "project"] {
            let tags = try ["read", "write"].map {
                try #require(try bench.ask("GET", "apps/shop/" + path, nil, bench.token($0)).headers["etag"])
            }
            #expect(tags[0] != tags[1], "\(path)")
        }
    }
}
