import CountersignCore
import CountersignTesting
import CountersignTransport
import Foundation
import Testing

@testable import CountersignCLI

/// `countersign self-check` with scripted responses of gateways and proxies.
struct SelfCheckTests {
    private static let good: [String: (status: Int, body: String)] = [
        "/livez": (200, "{}"), "/readyz": (200, "{}"),
        "/openapi.json": (200, #"{"info":{"version":"\#(countersignVersion)"}}"#),
        "/v1/batch": (401, #"{"code":"invalid_write_key"}"#),
        "/.well-known/oauth-authorization-server": (200, #"{"issuer":"https://collect.example"}"#),
        "/metrics": (403, "{}"), "/admin": (404, "{}"),
    ]

    private func findings(
        _ url: String = "https://collect.example", echoes: Bool = true,
        with changes: [String: (status: Int, body: String)] = [:]
    ) async throws -> [String: Finding] {
        let answers = Self.good.merging(changes) { $1 }
        let transport = ScriptedTransport { request in
            let path = request.url.path
            let answer = answers[path] ?? answers[String(path.dropLast())] ?? (404, "")
            let id = request.headers.first { $0.name == "X-Request-Id" }
            return TransportResponse(
                status: answer.status, headers: echoes ? [id].compactMap(\.self) : [],
                body: Array(answer.body.utf8))
        }
        let found = await SelfCheck(url: try #require(URL(string: url)), transport: transport).findings()
        return Dictionary(found.map { ($0.name, $0) }) { first, _ in first }
    }

    @Test func allFindingsOfAGoodDeploymentAreOK() async throws {
        let found = try await findings()
        #expect(found.values.allSatisfy { $0.outcome == .ok }, "\(found)")
        #expect(
            Set(found.keys) == [
                "gateway", "network", "storage", "version", "answers", "issuer", "metrics", "admin",
            ])
    }

    @Test func faultsOfADeploymentAreReported() async throws {
        #expect(try await findings(with: ["/readyz": (503, "storage_full")])["storage"]?.outcome == .failed)
        #expect(try await findings(with: ["/readyz": (404, "")])["storage"]?.outcome == .warning)
        #expect(try await findings(with: ["/livez": (404, "")])["gateway"]?.outcome == .failed)
        #expect(try await findings(with: ["/v1/batch": (502, "Bad Gateway")])["answers"]?.outcome == .failed)
        #expect(try await findings(with: ["/metrics": (200, "")])["metrics"]?.outcome == .warning)
        #expect(try await findings(with: ["/admin": (200, "")])["admin"]?.outcome == .warning)
        #expect(try await findings(echoes: false)["request id"]?.outcome == .warning)
        #expect(try await findings("https://other.example")["issuer"]?.outcome == .warning)
        #expect(try await findings("http://collect.example")["network"]?.outcome == .warning)
    }

    @Test(arguments: [("/livez", [Finding.Outcome.failed]), ("/readyz", [.ok, .failed])])
    func aRequestWithoutAResponseIsTheLastFinding(path: String, outcomes: [Finding.Outcome]) async throws {
        let transport = ScriptedTransport { request in
            if request.url.path == path { throw HTTPTransportError(.cannotConnect, "refused") }
            return TransportResponse(status: 200, body: [])
        }
        let url = try #require(URL(string: "https://collect.example"))
        let found = await SelfCheck(url: url, transport: transport).findings()
        #expect(found.map(\.outcome) == outcomes)
        #expect(found.last?.code == .unavailable)
    }
}
