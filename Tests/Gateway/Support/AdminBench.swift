import CountersignCore
import CountersignCrypto
package import CountersignGateway
package import CountersignGatewayTesting
package import CountersignTesting
import Foundation
package import GatewayModel
package import GatewayStorage

/// A gateway with a manual clock and the app `shop`. Deallocation stops it and deletes its data.
package final class AdminBench: Sendable {
    package typealias Answer = TestAnswer

    /// A signed-in dashboard user.
    package struct Visitor {
        package let cookie: String
        package let csrf: String
        /// Headers that the dashboard sends with a change.
        package var headers: [String: String] {
            ["Cookie": cookie, "X-CSRF-Token": csrf, "Origin": "http://localhost"]
        }
    }

    package static let password = "correct horse battery"
    /// Hashed at a low cost to keep tests fast.
    package static let passwordHash = PasswordHash(password, cost: passwordCost)
    private static let passwordCost = Scrypt.Cost(n: 16, r: 8, p: 1)

    package let place: TestStorage
    package let clock = ManualClock(now: Date())
    package let apps: AppDirectory
    package let writeKey: String
    package let gateway: Gateway
    package var now: Int64 { Milliseconds(clock.now).count }

    private let transport: TestTransport

    package init(
        _ transport: TestTransport = .standard, configure: (inout GatewayConfiguration) -> Void = { _ in }
    ) throws {
        self.transport = transport
        place = try TestStorage(.issuingKey)
        apps = try place.openControl()
        writeKey = try apps.createApp(id: "shop", name: "The shop").writeKey
        gateway = try Self.start(place, clock, transport, configure)
    }

    package static func start(
        _ place: TestStorage, _ clock: ManualClock, _ transport: TestTransport = .standard,
        _ configure: (inout GatewayConfiguration) -> Void = { _ in }
    ) throws -> Gateway {
        var configuration = place.configuration
        configuration.passwordCost = passwordCost
        configure(&configuration)
        let gateway = try Gateway(configuration: configuration, now: { clock.now })
        try transport.start(gateway)
        return gateway
    }

    /// A client of the gateway's ingestion API.
    package func client() throws -> any TestClient { try transport.client(of: gateway) }

    /// Sends a body of events. Throws unless it is accepted.
    package func store(_ body: String) throws {
        let answer = try client().post(body, headers: ["X-Write-Key": writeKey])
        guard answer?.status == 200 else { throw POSIXError(.EBADMSG) }
    }

    deinit { gateway.stop() }

    /// Sends a request, from a new client unless a client is given.
    package func ask(
        _ method: String, _ path: String, _ body: String? = nil, _ headers: [String: String] = [:],
        by client: (any TestClient)? = nil
    ) throws -> Answer {
        var headers = headers
        if body != nil { headers["Content-Type"] = headers["Content-Type"] ?? "application/json" }
        let client =
            try client
            ?? (gateway.adminPort == gateway.port ? self.client() : RawConnection(port: gateway.adminPort))
        let answer = client.send(
            method, path.hasPrefix("/") ? path : "/admin/api/" + path, headers, body.map { Array($0.utf8) })
        guard let answer else { throw POSIXError(.ECONNRESET) }
        return answer
    }

    /// An `Authorization` header with a new API token.
    package func token(_ scopes: String..., expires: Int64? = nil) throws -> [String: String] {
        let text = try apps.apiTokens.create(name: "test", scopes: scopes, expiresMilliseconds: expires).text
        return ["Authorization": "Bearer \(text)"]
    }

    /// The items of a list.
    package func items(_ path: String, _ headers: [String: String]) throws -> [[String: Any]] {
        try ask("GET", path, nil, headers).json["items"] as? [[String: Any]] ?? []
    }

    package func signIn(_ name: String, _ password: String = password) throws -> Answer {
        try ask("POST", "session", #"{"name":"\#(name)","password":"\#(password)"}"#)
    }

    /// Makes a user and signs it in.
    package func visitor(_ role: AdminRole, _ name: String) throws -> Visitor {
        try apps.admins.createUser(name: name, role: role, password: Self.passwordHash)
        return Self.visitor(try signIn(name))
    }

    package static func visitor(_ answer: Answer) -> Visitor {
        let cookie = answer.headers["set-cookie"]?.split(separator: ";").first.map(String.init)
        return Visitor(cookie: cookie ?? "", csrf: answer.json["csrf"] as? String ?? "")
    }

    /// Every operation in the API's OpenAPI document: method, path and required role.
    package func operations() throws -> [(method: String, path: String, role: String?)] {
        let document = try ask("GET", "openapi.json", nil, token("read")).json
        return (document["paths"] as? [String: [String: [String: Any]]] ?? [:]).flatMap { path, item in
            item.map { ($0.key.uppercased(), path, $0.value["x-role"] as? String) }
        }.sorted { ($0.1, $0.0) < ($1.1, $1.0) }
    }
}
