internal import CDashboard
internal import CountersignCore
internal import CountersignCrypto
internal import Foundation
internal import GatewayHTTP

/// The SDK for web pages, embedded as one file. Pages of other origins can load it only if an app allows the
/// origin (`CORS`), because module scripts are fetched with CORS.
struct BrowserClient: Sendable {
    private let body: [UInt8]
    private let digest: [UInt8]

    init() {
        let file = countersign_browser_client()?.pointee
        body = Array(UnsafeBufferPointer(start: file?.bytes, count: file?.size ?? 0))
        digest = Array(SHA256.digest(body))
    }

    private var tag: String { Base64URL.encode(Array(digest.prefix(16))) }

    private var permanentName: String { "countersign-\(tag).js" }

    var endpoints: [Endpoint] {
        [
            Endpoint(method: "GET", path: "/sdk/{file}") { request, parts in
                switch String(parts[0]) {
                case "countersign.js": script(request, caching: "no-cache")
                case permanentName: script(request, caching: "public, max-age=31536000, immutable")
                case "countersign.json": description
                default:
                    .answer(
                        request.failure(
                            404, "not_found",
                            "there is no such file; /sdk/countersign.json names the present one"))
                }
            }
        ]
    }

    private func script(_ request: HTTPRequest, caching: String) -> HTTPOutcome {
        var headers = [
            ("Cache-Control", caching), ("ETag", "\"\(tag)\""), ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ]
        if EntityTags(cachedBy: request).match(["\"\(tag)\""]) {
            return .answer(HTTPResponse(status: 304, headers: headers, body: []))
        }
        headers.append(("Content-Type", "text/javascript; charset=utf-8"))
        var response = HTTPResponse(status: 200, headers: headers, body: body)
        response.isShared = true
        return .answer(response)
    }

    /// The permanent path and the digest for Subresource Integrity (W3C, section 3.5).
    private var description: HTTPOutcome {
        let integrity = "sha256-\(Data(digest).base64EncodedString())"
        let body: JSONValue = [
            "path": .string("/sdk/\(permanentName)"), "integrity": .string(integrity),
        ]
        return .answer(.json(200, body.bytes).with("Cache-Control", "no-cache"))
    }
}
