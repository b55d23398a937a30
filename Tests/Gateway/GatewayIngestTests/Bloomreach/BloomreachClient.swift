import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayStorage
import GatewayTestSupport

/// A gateway and a connection that sends requests like the Bloomreach SDKs.
struct BloomreachClient {
    let fixture: GatewayFixture
    let connection: any TestClient
    let project = "0aef3a96-3804-11e8-b710-141877340e97"

    init(limits: GatewayLimits = GatewayLimits()) throws {
        fixture = try GatewayFixture(.standard, enforcement: .disabled, limits: limits)
        connection = try fixture.client()
        try fixture.edit { try $0.setProjectToken(project, for: fixture.appID) }
    }

    /// The header fields of the iOS SDK, as URLSession writes them.
    func headers(_ authorization: String? = nil) -> [String: String] {
        [
            "Content-Type": "application/json", "Accept": "application/json",
            "Authorization": authorization ?? "Token \(fixture.writeKey)",
        ]
    }

    func post(
        _ path: String, _ body: String, authorization: String? = nil, extra: [String: String] = [:]
    ) -> TestAnswer? {
        connection.post(
            body, path: path.replacingOccurrences(of: "{p}", with: project),
            headers: headers(authorization).merging(extra) { $1 })
    }

    func get(_ path: String, authorization: String? = nil) -> TestAnswer? {
        connection.get(path.replacingOccurrences(of: "{p}", with: project), headers: headers(authorization))
    }

    /// Changes the project as an operator in another process would.
    func edit(_ change: (AppDirectory) throws -> Void) throws { try fixture.edit(change) }

    /// The stored events: type, user, device, name, time and body of each.
    func events() throws -> [[String?]] {
        try fixture.rows("type", "user_id", "anonymous_id", "name", "timestamp_ms", "body")
    }
}
