internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// Checks a gateway from the outside, through its proxy, certificate and network.
struct SelfCheck: Sendable {
    let url: URL
    let transport: any HTTPTransport
    var now: @Sendable () -> Date = { Date() }

    private static let requestID = "self-check-\(UUIDv7.make())"

    /// Checks that the gateway responds, its clock and its storage. Stops after the first failed request.
    func health() async -> [Finding] {
        var found: [Finding] = []
        do throws(HTTPTransportError) {
            let began = now()
            let live = try await get("livez")
            guard live.status == 200 else {
                return [
                    .failed(
                        "gateway", "\(url.absoluteString)/livez answers \(live.status)",
                        "is this a gateway, and does the proxy pass /livez on?")
                ]
            }
            let ended = now()
            let milliseconds = Milliseconds(seconds: ended.timeIntervalSince(began)).count
            found.append(.ok("gateway", "\(url.absoluteString) answered in \(milliseconds) ms"))
            if let clock = Finding.clock(live, asked: began, answered: ended) { found.append(clock) }
            found.append(readiness(try await get("readyz")))
        } catch {
            found.append(unreachable(error))
        }
        return found
    }

    /// All checks, in order. Stops after the first failed request.
    func findings() async -> [Finding] {
        var found = await health()
        guard found.last?.name == "storage" else { return found }
        found.append(network)
        do throws(HTTPTransportError) {
            found.append(version(try await get("openapi.json")))
            found += rejection(
                try await send(
                    "POST", "v1/batch",
                    headers: [("X-Request-Id", Self.requestID), ("X-Write-Key", "self-check")]))
            found.append(issuer(try await get(".well-known/oauth-authorization-server")))
            if !isLoopback {
                found.append(
                    exposed(
                        "metrics", try await get("metrics"),
                        "set metrics-from, or block /metrics in the proxy"))
                found.append(
                    exposed("admin", try await get("admin/"), "set admin-host, or block /admin/ in the proxy")
                )
            }
        } catch {
            found.append(unreachable(error))
        }
        return found
    }

    private func get(_ path: String) async throws(HTTPTransportError) -> TransportResponse {
        try await send("GET", path)
    }

    private func send(
        _ method: String, _ path: String, headers: [(name: String, value: String)] = []
    ) async throws(HTTPTransportError) -> TransportResponse {
        try await transport.send(
            TransportRequest(
                method: method, url: url.appendingPathComponent(path),
                headers: headers + [(name: "Content-Type", value: "application/json")],
                body: method == "POST" ? Array("{}".utf8) : [], timeout: 10))
    }

    private func unreachable(_ error: HTTPTransportError) -> Finding {
        .failed(
            "gateway", "\(url.absoluteString) does not answer: \(error.detail)",
            error.code == .tls
                ? "renew the certificate, serve its whole chain, or name its CA with --ca-file"
                : "does it run, does the proxy reach it, and is the port open?",
            code: .unavailable)
    }

    private var isLoopback: Bool { Loopback.isHost(url.host ?? "") }

    private var network: Finding {
        if url.scheme == "https" { return .ok("network", "https, with a certificate that is trusted here") }
        return isLoopback
            ? .ok("network", "http, to this machine only")
            : .warning(
                "network", "http: write keys and tokens can be read in transit",
                "serve https: a proxy in front, or tls-certificate and tls-key")
    }

    private func readiness(_ answer: TransportResponse) -> Finding {
        switch answer.status {
        case 200: .ok("storage", "a write has just succeeded")
        case 503:
            .failed(
                "storage", Self.text(answer), "curl '\(url.absoluteString)/readyz?verbose' lists the checks")
        default:
            .warning(
                "storage", "/readyz answers \(answer.status) here", "request /readyz from inside the network")
        }
    }

    private func version(_ answer: TransportResponse) -> Finding {
        guard let version = JSONValue(parsing: answer.body)?["info"]["version"].text else {
            return .warning("version", "/openapi.json answers \(answer.status) here")
        }
        return Finding.version(version)
    }

    /// A request with an unknown write key must reach the gateway, and the error must arrive unchanged.
    private func rejection(_ answer: TransportResponse) -> [Finding] {
        guard answer.status == 401, JSONValue(parsing: answer.body)?["code"].text == "invalid_write_key"
        else {
            return [
                .failed(
                    "answers",
                    "a request with an unknown write key is answered \(answer.status), not 401 invalid_write_key",
                    "the proxy must pass POST /v1/ on, and answers of 400 and above back unchanged")
            ]
        }
        guard answer.header("X-Request-Id") == Self.requestID else {
            return [
                .ok("answers", "rejections come back with their code"),
                .warning(
                    "request id", "X-Request-Id does not come back as it was sent",
                    "pass it through, so that the proxy's and the gateway's logs share request ids"),
            ]
        }
        return [.ok("answers", "rejections come back with their code and X-Request-Id")]
    }

    private func issuer(_ answer: TransportResponse) -> Finding {
        guard let issuer = JSONValue(parsing: answer.body)?["issuer"].text else {
            return .warning("issuer", "/.well-known/oauth-authorization-server answers \(answer.status) here")
        }
        let own =
            url.absoluteString.hasSuffix("/") ? String(url.absoluteString.dropLast()) : url.absoluteString
        return issuer == own
            ? .ok("issuer", issuer)
            : .warning("issuer", "the gateway issues tokens as \(issuer)", "set public-url to \(own)")
    }

    private func exposed(_ name: String, _ answer: TransportResponse, _ remedy: String) -> Finding {
        answer.status == 200
            ? .warning(name, "/\(name) can be read here", remedy)
            : .ok(name, "/\(name) is closed here")
    }

    private static func text(_ answer: TransportResponse) -> String {
        TerminalText.safe(
            String(decoding: answer.body.prefix(300), as: UTF8.self).trimmingCharacters(
                in: .whitespacesAndNewlines))
    }
}
