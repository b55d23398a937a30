import CountersignCore
import CountersignTesting
import Foundation

@testable import CountersignGateway

/// A real gateway whose clock stands still, with the app `shop`, asked over real sockets.
struct AdminBench {
    typealias Answer = RawConnection.Answer

    /// Somebody who is signed in.
    struct Visitor {
        let cookie: String
        let csrf: String
        /// What a page of the gateway sends with a change.
        var headers: [String: String] {
            ["Cookie": cookie, "X-CSRF-Token": csrf, "Origin": "http://localhost"]
        }
    }

    static let password = "correct horse battery"

    let folder: String
    let clock = ManualClock(now: Date())
    let apps: AppDirectory
    let writeKey: String
    let gateway: Gateway
    var now: Int64 { Int64(clock.now.timeIntervalSince1970 * 1000) }

    init(configure: (inout GatewayConfiguration) -> Void = { _ in }) throws {
        folder =
            FileManager.default.temporaryDirectory.appendingPathComponent("admin-" + UUID().uuidString).path
        apps = try AppDirectory(dataDirectory: folder)
        writeKey = try apps.createApp(id: "shop", name: "The shop").writeKey
        gateway = try Self.start(folder, clock, configure)
    }

    static func start(
        _ folder: String, _ clock: ManualClock, _ configure: (inout GatewayConfiguration) -> Void = { _ in }
    ) throws -> Gateway {
        var configuration = GatewayConfiguration(dataDirectory: folder)
        configuration.port = 0
        configuration.stopGraceSeconds = 1
        configure(&configuration)
        let gateway = try Gateway(configuration: configuration, now: { clock.now })
        try gateway.start()
        return gateway
    }

    func remove() {
        gateway.stop()
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// One request on a connection of its own.
    func ask(
        _ method: String, _ path: String, _ body: String? = nil, _ headers: [String: String] = [:],
        port: UInt16? = nil
    ) throws -> Answer {
        let connection = try RawConnection(port: port ?? gateway.adminPort)
        var head =
            "\(method) \(path.hasPrefix("/") ? path : "/admin/api/" + path) HTTP/1.1\r\nHost: localhost\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        if let body { head += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n" }
        connection.send(head + "\r\n" + (body ?? ""))
        guard let answer = connection.answer() else { throw POSIXError(.ECONNRESET) }
        return answer
    }

    /// The header of a new API token.
    func token(_ scopes: String..., expires: Int64? = nil) throws -> [String: String] {
        let text = try apps.createAdminToken(
            name: "test", scopes: scopes, expiresMilliseconds: expires
        ).text
        return ["Authorization": "Bearer \(text)"]
    }

    func signIn(_ name: String, _ password: String = password) throws -> Answer {
        try ask("POST", "session", #"{"name":"\#(name)","password":"\#(password)"}"#)
    }

    /// Makes a user and signs it in.
    func visitor(_ role: AdminRole, _ name: String) throws -> Visitor {
        try apps.createUser(name: name, role: role, password: PasswordHash(Self.password))
        return Self.visitor(try signIn(name))
    }

    static func visitor(_ answer: Answer) -> Visitor {
        let cookie = answer.headers["set-cookie"]?.split(separator: ";").first.map(String.init)
        return Visitor(cookie: cookie ?? "", csrf: answer.json["csrf"] as? String ?? "")
    }

    /// Every operation of the API as its document has it: method, path and the role that it needs.
    func operations() throws -> [(method: String, path: String, role: String?)] {
        let document = try ask("GET", "openapi.json", nil, token("read")).json
        return (document["paths"] as? [String: [String: [String: Any]]] ?? [:]).flatMap { path, item in
            item.map { ($0.key.uppercased(), path, $0.value["x-role"] as? String) }
        }.sorted { ($0.1, $0.0) < ($1.1, $1.0) }
    }
}
