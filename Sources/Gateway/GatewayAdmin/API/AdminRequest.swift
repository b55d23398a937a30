internal import CountersignCore
internal import Foundation
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct AdminRequest: Sendable {
    let id: String
    let method: String
    let query: String?
    /// The path parameters, decoded.
    let parameters: [String]
    let body: [UInt8]
    let clientAddress: String
    let cookie: String?
    let authorization: String?
    let csrfToken: String?
    let origin: String?
    let fetchSite: String?
    let host: String?
    let contentType: String?
    var ifMatch: String?
    let lastEventID: String?
    let idempotencyKey: String?

    init(_ request: HTTPRequest, _ parameters: [Substring]) {
        id = request.id
        method = request.method
        query = request.query
        self.parameters = parameters.map { part in
            let part = String(part)
            // A longer value stays encoded. It matches nothing, and decoded text may be slow to compare.
            return part.removingPercentEncoding.flatMap { $0.utf8.count <= 1_024 ? $0 : nil } ?? part
        }
        body = request.body
        clientAddress = request.clientAddress
        cookie = request.header("cookie")
        authorization = request.header("authorization")
        csrfToken = request.header("x-csrf-token")
        origin = request.header("origin")
        fetchSite = request.header("sec-fetch-site")
        host = request.header("host")
        contentType = request.header("content-type")
        ifMatch = request.header("if-match")
        lastEventID = request.header("last-event-id")
        idempotencyKey = request.header("idempotency-key")
    }

    var isJSON: Bool {
        guard let type = contentType?.split(separator: ";").first else { return true }
        let name = type.trimmingCharacters(in: .whitespaces).lowercased()
        return name == "application/json" || name.hasSuffix("+json")
    }

    /// Whether the method is safe (RFC 9110, section 9.2.1).
    var isSafe: Bool { method == "GET" || method == "HEAD" }

    /// Nil if the cookie is missing or repeated. Over HTTPS only the cookie with the prefix `__Host-` is accepted. A
    /// page of a sibling domain or an attacker on plain HTTP could set a cookie without the prefix (RFC 6265bis,
    /// section 4.1.3.2).
    func sessionToken(isSecure: Bool) -> String? {
        let name = AdminCookie.name(isSecure: isSecure)
        var found: String?
        for pair in (cookie ?? "").split(separator: ";") {
            let parts = Substring(pair.utf8.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") })
                .split(
                    separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, parts[0].utf8.elementsEqual(name.utf8) else { continue }
            // With two cookies of the name, the gateway's own cannot be identified.
            guard found == nil else { return nil }
            found = String(parts[1])
        }
        return found
    }

    var bearerToken: String? {
        guard let authorization, authorization.lowercased().hasPrefix("bearer ") else { return nil }
        return String(authorization.dropFirst(7)).trimmingCharacters(in: .whitespaces)
    }

    /// Whether the request comes from a page of this gateway; nil without `Origin` and `Sec-Fetch-Site`. Compares
    /// the whole serialized origin (RFC 6454, section 6.2), because a parser would ignore the user in
    /// `https://user@host`.
    func isOwnOrigin(publicURL: String?) -> Bool? {
        guard let origin else {
            return fetchSite.map { $0 == "same-origin" || $0 == "none" }
        }
        let own = [publicURL] + ["http", "https"].map { scheme in host.map { scheme + "://" + $0 } }
        return own.compactMap(\.self).contains { Self.serialized($0) == origin }
    }

    /// An origin as browsers write it: in lower case and without the scheme's default port.
    private static func serialized(_ origin: String) -> String {
        let origin = origin.lowercased()
        let port = origin.hasPrefix("https:") ? ":443" : ":80"
        return origin.hasSuffix(port) ? String(origin.dropLast(port.utf8.count)) : origin
    }
}

package enum AdminCookie {
    private static let secureName = "__Host-countersign"
    private static let plainName = "countersign"

    static func name(isSecure: Bool) -> String { isSecure ? secureName : plainName }

    /// The field that sets the cookie. An empty token deletes it.
    package static func field(_ token: String, isSecure: Bool) -> (name: String, value: String) {
        let age = token.isEmpty ? 0 : AdminStore.signInMilliseconds / 1000
        // Browsers accept the prefix only with `Path=/` and `Secure` (RFC 6265bis, section 4.1.3.2).
        let place = "\(name(isSecure: isSecure))=\(token); " + (isSecure ? "Path=/; Secure" : "Path=/admin")
        return ("Set-Cookie", "\(place); HttpOnly; SameSite=Strict; Max-Age=\(age)")
    }
}
