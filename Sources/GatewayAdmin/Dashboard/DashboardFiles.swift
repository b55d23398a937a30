internal import CDashboard
internal import CountersignJOSE
internal import GatewayHTTP

/// The files of the page, which are part of the program.
struct DashboardFiles: Sendable {
    private struct File: Sendable {
        let body: [UInt8]
        let type: String
        let tag: String
    }

    /// The page can load from here only, and nobody can frame it.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        + "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

    private static let types = [
        "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
        "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml", "png": "image/png",
        "json": "application/json", "txt": "text/plain; charset=utf-8",
    ]

    private let files: [String: File]

    init() {
        var files: [String: File] = [:]
        var next = countersign_dashboard_first()
        while let file = next?.pointee, let name = file.path {
            let path = String(cString: name)
            let body = Array(UnsafeBufferPointer(start: file.bytes, count: file.size))
            let ending = path.split(separator: ".").last.map(String.init) ?? ""
            files[path] = File(
                body: body, type: Self.types[ending] ?? "application/octet-stream",
                tag: "\"\(Base64URL.encode(Array(SHA256.digest(body).prefix(16))))\"")
            next = next?.advanced(by: 1)
        }
        self.files = files
    }

    var endpoints: [Endpoint] {
        [
            Endpoint(method: "GET", path: "/admin") { _, _ in
                .answer(HTTPResponse(status: 308, headers: [("Location", "/admin/")], body: []))
            },
            Endpoint(method: "GET", path: "/admin/") { request, _ in serve("index.html", request) },
        ]
            + ["/admin/assets/{file}", "/admin/assets/{folder}/{file}"].map { path in
                Endpoint(method: "GET", path: path) { request, parts in
                    serve((["assets"] + parts).joined(separator: "/"), request)
                }
            }
    }

    private func serve(_ path: String, _ request: HTTPRequest) -> HTTPOutcome {
        guard let file = files[path] else {
            return .answer(
                .failure(404, code: "not_found", reason: "the page has no such file", requestID: request.id))
        }
        var headers = [
            ("Content-Security-Policy", Self.policy), ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"), ("Cache-Control", "no-cache"),
            ("ETag", file.tag),
        ]
        if request.header("if-none-match") == file.tag {
            return .answer(HTTPResponse(status: 304, headers: headers, body: []))
        }
        headers.append(("Content-Type", file.type))
        var response = HTTPResponse(status: 200, headers: headers, body: file.body)
        response.isShared = true
        return .answer(response)
    }
}
