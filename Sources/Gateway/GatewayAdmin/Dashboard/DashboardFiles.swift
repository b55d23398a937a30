internal import CountersignCore
internal import CountersignCrypto
internal import Foundation
internal import GatewayHTTP

struct DashboardFiles: Sendable {
    private struct File: Sendable {
        let type: String
        let tag: String
        let body: [UInt8]
        let packed: [UInt8]
        /// Whether the name contains the content's hash, so that browsers may cache the file permanently.
        let isForever: Bool

        init(_ text: String, type: String, isForever: Bool) {
            body = Array(text.utf8)
            packed = Gzip.compress(body, level: 9) ?? []
            self.type = type
            self.isForever = isForever
            tag = "\"\(DashboardFiles.hash(text))\""
        }
    }

    private static let style = DashboardBundle.style()

    /// Allows this origin's resources, the page's style sheet (CSP 3, section 2.3.1) and `data:` images; no framing.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'sha256-\(Data(SHA256.digest(style)).base64EncodedString())'; "
        + "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        + "frame-ancestors 'none'"

    /// Built at the first request, because many gateways never serve the dashboard.
    private static let files: BytewiseDictionary<File> = {
        let script = DashboardBundle.script()
        let name = "assets/app.\(hash(script)).js"
        let page = DashboardBundle.page(script: name, style: style)
        var files: BytewiseDictionary<File> = [
            "": File(page, type: "text/html; charset=utf-8", isForever: false),
            name: File(script, type: "text/javascript; charset=utf-8", isForever: true),
            "icon": File(
                DashboardBundle.files["assets/icons/favicon.svg"] ?? "", type: "image/svg+xml",
                isForever: false),
        ]
        // In the address of a page of the documentation, a comma separates folders.
        for (path, text) in DashboardBundle.files where path.hasPrefix("docs/") {
            files[path.replacing("/", with: ",")] = File(
                text, type: "text/plain; charset=utf-8", isForever: false)
        }
        return files
    }()

    private static func hash(_ text: String) -> String {
        Base64URL.encode(Array(SHA256.digest(text).prefix(12)))
    }

    var endpoints: [Endpoint] {
        [
            Endpoint(method: "GET", path: "/") { _, _ in
                .answer(HTTPResponse(status: 302, headers: [("Location", "/admin/")], body: []))
            },
            Endpoint(method: "GET", path: "/favicon.ico") { request, _ in serve("icon", request) },
            Endpoint(method: "GET", path: "/admin") { _, _ in
                .answer(HTTPResponse(status: 308, headers: [("Location", "/admin/")], body: []))
            },
            Endpoint(method: "GET", path: "/admin/") { request, _ in serve("", request) },
            Endpoint(method: "GET", path: "/admin/assets/{file}") { request, parts in
                serve("assets/\(parts[0])", request)
            },
            Endpoint(method: "GET", path: "/admin/docs/{page}") { request, parts in
                serve("docs,\(parts[0])", request)
            },
        ]
    }

    private func serve(_ path: String, _ request: HTTPRequest) -> HTTPOutcome {
        guard let file = Self.files[path] else {
            return .answer(request.failure(404, "not_found", "the page has no such file"))
        }
        var headers = [
            ("Content-Security-Policy", Self.policy), ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cache-Control", file.isForever ? "public, max-age=31536000, immutable" : "no-cache"),
            // Weak, because the content may be sent compressed or not.
            ("ETag", "W/" + file.tag), ("Vary", "Accept-Encoding"),
        ]
        if EntityTags(cachedBy: request).match([file.tag]) {
            return .answer(HTTPResponse(status: 304, headers: headers, body: []))
        }
        headers.append(("Content-Type", file.type))
        let isPacked = request.takesGzip && !file.packed.isEmpty
        if isPacked { headers.append(("Content-Encoding", "gzip")) }
        var response = HTTPResponse(status: 200, headers: headers, body: isPacked ? file.packed : file.body)
        response.isShared = true
        return .answer(response)
    }
}
