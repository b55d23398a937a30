internal import CountersignCore
internal import Foundation

struct AdminRequest: Sendable {
    let method: String
    /// The unescaped path segments below ``root``.
    let path: [String]
    /// Parameters with the value nil are omitted.
    var query: [(name: String, value: String?)] = []
    var ifMatch: String?
    var body: JSONValue?
    var root = "/admin/api"

    var encodedPath: String { path.map { "/" + Self.encoded($0) }.joined() }

    var encodedQuery: String? {
        let pairs = query.compactMap { name, value in value.map { "\(name)=\(Self.encoded($0))" } }
        return pairs.isEmpty ? nil : pairs.joined(separator: "&")
    }

    private static func encoded(_ text: String) -> String {
        let unreserved = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }
}

struct AdminAnswer: Sendable {
    /// The entity tag, for ``AdminRequest/ifMatch``.
    let tag: String?
    /// Null for an empty body.
    let body: JSONValue

    /// Throws the error of an unsuccessful response, with the matching exit code. `root` is ``AdminRequest/root``.
    init(status: Int, tag: String?, bytes: [UInt8], root: String = "") throws(CommandError) {
        let body = bytes.isEmpty ? .null : JSONValue(parsing: bytes, maximumDepth: 1_024)
        guard (200..<300).contains(status) else {
            throw CommandError(status: status, problem: body ?? .null, root: root)
        }
        guard let body else {
            throw CommandError(
                .failed, "the answer is not JSON", hint: "is this the URL of a Countersign gateway?")
        }
        self.tag = tag
        self.body = body
    }
}

/// The admin API of a gateway, data directory or database.
protocol AdminClient: Sendable {
    var location: String { get }

    /// - Throws: ``CommandError`` for an error response or a failed request.
    func send(_ request: AdminRequest) async throws -> AdminAnswer

    /// Passes the body to `take` as it arrives. Returns the response's header fields.
    @discardableResult func stream(
        _ request: AdminRequest, _ take: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws -> [(name: String, value: String)]
}

extension AdminClient {
    func get(_ path: String..., query: [(name: String, value: String?)] = []) async throws -> AdminAnswer {
        try await send(AdminRequest(method: "GET", path: path, query: query))
    }

    func post(_ path: String..., body: JSONValue? = nil) async throws -> JSONValue {
        try await send(AdminRequest(method: "POST", path: path, body: body)).body
    }

    @discardableResult func delete(
        _ path: String..., query: [(name: String, value: String?)] = [], ifMatch: String? = nil
    ) async throws -> JSONValue {
        try await send(AdminRequest(method: "DELETE", path: path, query: query, ifMatch: ifMatch)).body
    }

    /// Deletes an app. Returns the progress of the deletion.
    @discardableResult func deleteApp(_ id: String) async throws -> JSONValue {
        try await send(
            AdminRequest(method: "DELETE", path: ["apps", id], body: ["confirm": .string(id)])
        ).body
    }

    /// Returns the items of all pages, at most `limit`. Throws ``CommandError`` for an error response or no response.
    func items(
        _ path: String..., query: [(name: String, value: String?)] = [], limit: Int? = nil
    ) async throws -> [JSONValue] {
        var items: [JSONValue] = []
        var cursor: String?
        repeat {
            let size = min(500, (limit ?? .max) - items.count)
            let page = try await send(
                AdminRequest(
                    method: "GET", path: path,
                    query: query + [("cursor", cursor), ("limit", String(size))])
            ).body
            items += page["items"].elements
            cursor = page["next"].text
        } while cursor != nil && items.count < limit ?? .max
        return items
    }

    /// Reads a resource and replaces it by the result of `edit`. Throws `conflict` if another client has changed the
    /// resource meanwhile, and errors of `edit`.
    func change(
        _ path: String..., edit: (inout JSONObject) throws -> Void
    ) async throws -> JSONValue {
        let read = try await send(AdminRequest(method: "GET", path: path))
        guard case .object(var members) = read.body else {
            throw CommandError(
                .failed, "the answer is not a JSON object", hint: "is this the URL of a Countersign gateway?")
        }
        try edit(&members)
        return try await send(
            AdminRequest(method: "PUT", path: path, ifMatch: read.tag, body: .object(members))
        ).body
    }

    /// Throws `conflict` if another client has changed the resource since `read`. If nil, reads the resource first.
    func patch(_ path: String..., from read: AdminAnswer? = nil, body: JSONValue) async throws -> JSONValue {
        var read = read
        if read == nil { read = try await send(AdminRequest(method: "GET", path: path)) }
        return try await send(AdminRequest(method: "PATCH", path: path, ifMatch: read?.tag, body: body)).body
    }
}

extension CommandError {
    /// Converts an error of the admin API (RFC 9457) or of the API for reading events, with the matching exit code.
    init(status: Int, problem: JSONValue, root: String) {
        let detail = problem["detail"].text ?? problem["reason"].text
        let reason = detail.map { TerminalText.safe($0) } ?? "the server answered \(status)"
        switch status {
        case 401:
            self.init(
                .notAuthorized, reason,
                hint: "`countersign admin token create` on the gateway's machine makes a token")
        case 403:
            self.init(.notAuthorized, reason, hint: "`countersign profile show` shows the token's role")
        case 404 where detail == nil:
            self.init(
                .notFound, reason,
                hint: root == "/v1"
                    ? "is this the gateway's URL for clients?"
                    : "is this the URL of a Countersign gateway's admin listener?")
        case 404:
            let hint: String? =
                if reason.hasPrefix("there is no app ") {
                    "`countersign app list` lists them"
                } else if reason == "the app has no alert webhook" {
                    "`countersign webhook alerts set APP URL` sets one"
                } else {
                    nil
                }
            self.init(.notFound, reason, hint: hint)
        case 400, 422:
            let isPrivate = reason.contains("an owner can allow private addresses")
            self.init(.usage, reason, hint: isPrivate ? "pass --allow-private if that is intended" : nil)
        case 412, 428: self.init(.conflict, reason, hint: "run the command again")
        case 409: self.init(.conflict, reason)
        case 429, 502, 503, 504: self.init(.unavailable, reason, hint: "try again in a moment")
        default: self.init(.failed, reason)
        }
        self.problem = problem["code"].text
    }
}
