internal import CountersignJOSE
internal import Foundation
package import GatewayHTTP
package import GatewayModel

/// The site of the documentation, as `make docs` has built it, below `/docs/`.
///
/// Which files there are is read once, at the start: a request names one of these or none, so no path of a client ever
/// reaches the disk.
package struct DocumentationFiles: Sendable {
    /// By their path below the folder, with `/` between names.
    private let files: [String: URL]
    private let queue = BoundedQueue(label: "documentation", places: 64)

    /// More than any site has; a folder with more was not meant.
    private static let mostFiles = 100_000
    private static let largestFile = 16 * 1024 * 1024

    /// - Throws: `invalid` when the folder is no site.
    package init(folder: String) throws(GatewayError) {
        let root = URL(fileURLWithPath: folder).standardizedFileURL.resolvingSymlinksInPath()
        let keys: Set<URLResourceKey> = [.isRegularFileKey]
        let walk = FileManager.default.enumerator(
            at: root, includingPropertiesForKeys: Array(keys), options: [.skipsHiddenFiles])
        var files: [String: URL] = [:]
        while let file = walk?.nextObject() as? URL, files.count < Self.mostFiles {
            // Neither folders nor links, which could lead out of the folder.
            guard (try? file.resourceValues(forKeys: keys))?.isRegularFile == true else { continue }
            files[String(file.standardizedFileURL.path.dropFirst(root.path.count + 1))] = file
        }
        guard files["index.html"] != nil else {
            throw GatewayError(
                .invalid,
                "docs-folder: \(folder) has no index.html; build the site by `make docs BASE=/docs` and give .build/docs/site"
            )
        }
        self.files = files
    }

    package var endpoints: [Endpoint] {
        [
            Endpoint(method: "GET", path: "/docs") { _, _ in Self.moved(to: "/docs/") },
            // Listed, or the router would take it for `/docs` with a trailing slash.
            Endpoint(method: "GET", path: "/docs/") { request, _ in serve("", request) },
            Endpoint(method: "GET", path: "/docs/{file*}") { request, parts in
                serve(parts.first.map { String($0) } ?? "", request)
            },
        ]
    }

    private func serve(_ encoded: String, _ request: HTTPRequest) -> HTTPOutcome {
        guard let path = encoded.removingPercentEncoding else { return .answer(missing(request)) }
        if path.isEmpty || path.hasSuffix("/") { return read(path + "index.html", request) }
        // What the pages refer to is relative to their folder. Both are known here, so this leads nowhere else.
        if files[path] == nil, files[path + "/index.html"] != nil {
            return Self.moved(to: "/docs/\(encoded)/")
        }
        return read(path, request)
    }

    private static func moved(to path: String) -> HTTPOutcome {
        .answer(HTTPResponse(status: 308, headers: [("Location", path)], body: []))
    }

    private func missing(_ request: HTTPRequest) -> HTTPResponse {
        .failure(
            404, code: "not_found", reason: "the documentation has no such file", requestID: request.id)
    }

    private func read(_ path: String, _ request: HTTPRequest) -> HTTPOutcome {
        guard let file = files[path] else { return .answer(missing(request)) }
        guard queue.take() else {
            return .answer(
                .failure(
                    503, code: "overloaded", reason: "too many requests for the documentation; try again",
                    requestID: request.id
                ).with("Retry-After", "1"))
        }
        let (known, missing) = (request.header("if-none-match"), missing(request))
        // Digests of large pages take their time too.
        return .waiting({ [queue] done in
            queue.async { done(Self.answer(file, known: known) ?? missing) }
        }) { $0 }
    }

    /// Nil for a file that is not there any more.
    private static func answer(_ file: URL, known: String?) -> HTTPResponse? {
        guard let bytes = contents(of: file) else { return nil }
        let type = type(of: file.pathExtension)
        let tag = "\"\(Base64URL.encode(Array(SHA256.digest(bytes).prefix(12))))\""
        let headers = [
            ("Content-Security-Policy", policy(type.hasPrefix("text/html") ? bytes : [])),
            ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"), ("Cache-Control", "no-cache"),
            ("ETag", tag),
        ]
        if known == tag { return HTTPResponse(status: 304, headers: headers, body: []) }
        return HTTPResponse(status: 200, headers: headers + [("Content-Type", type)], body: bytes)
    }

    /// Nil for a file that has gone or grown beyond reason since the start.
    private static func contents(of file: URL) -> [UInt8]? {
        guard let size = (try? FileManager.default.attributesOfItem(atPath: file.path))?[.size] as? Int,
            size <= largestFile
        else { return nil }
        return (try? Data(contentsOf: file)).map { Array($0) }
    }

    /// Everything comes from here. DocC's pages have a script of a line inside of them, which is named by its digest, and
    /// styles of their own.
    private static func policy(_ page: [UInt8]) -> String {
        let scripts = inlineScripts(of: String(decoding: page, as: UTF8.self))
            .map { " 'sha256-\(Data(SHA256.digest(String($0))).base64EncodedString())'" }.joined()
        return "default-src 'none'; script-src 'self'\(scripts); style-src 'self' 'unsafe-inline'; "
            + "img-src 'self' data:; font-src 'self' data:; media-src 'self'; connect-src 'self'; "
            + "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    }

    /// What stands between `<script>` and its end, for scripts without a file.
    private static func inlineScripts(of page: String) -> [Substring] {
        page.components(separatedBy: "<script>").dropFirst().compactMap { rest in
            rest.range(of: "</script>").map { rest[..<$0.lowerBound] }
        }
    }

    private static func type(of suffix: String) -> String {
        types[suffix.lowercased()] ?? "application/octet-stream"
    }

    private static let types = [
        "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
        "js": "text/javascript; charset=utf-8", "json": "application/json",
        "txt": "text/plain; charset=utf-8", "svg": "image/svg+xml", "png": "image/png",
        "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "ico": "image/x-icon",
        "woff2": "font/woff2", "mp4": "video/mp4", "zip": "application/zip",
    ]
}
