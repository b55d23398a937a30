import CountersignCore
import Foundation
import SDKTestSupport
import Testing

@testable import CountersignDelivery
@testable import CountersignTransport

/// A scenario of `Conformance/scenarios`. `Conformance/README.md` describes the members.
struct Scenario: Sendable, CustomTestStringConvertible {
    enum Mode: String, Sendable {
        case signedUser = "signed_user"
        case accessToken = "access_token"
        case bloomreach
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    /// The name of this client in `clients`.
    private static let client = "swift"
    private static let folder = URL(fileURLWithPath: #filePath)
        .appendingPathComponent("../../../../Conformance/scenarios").standardizedFileURL

    let mode: Mode
    let name: String
    var configuration: JSONObject
    let provider: [JSONValue]?
    let rules: [JSONValue]
    let tokenLifetime: JSONValue?
    let steps: [JSONObject]

    var testDescription: String { "\(mode.rawValue): \(name)" }

    /// All scenarios that apply to this client.
    static func all() throws -> [Scenario] {
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        return try files.filter { $0.pathExtension == "json" }.sorted { $0.path < $1.path }.flatMap { file in
            guard let text = JSONDocument.object(Array(try Data(contentsOf: file))),
                let mode = text["mode"]?.string.flatMap(Mode.init), let scenarios = text["scenarios"]?.array
            else { throw Failure("\(file.lastPathComponent) is not a scenario file") }
            return try scenarios.compactMap { try Scenario($0, mode: mode) }
        }
    }

    /// Returns nil for a scenario that is limited to other clients.
    init?(_ value: JSONValue, mode: Mode) throws {
        guard let name = value["name"]?.string, let steps = value["steps"]?.array else {
            throw Failure("a scenario without a name or steps")
        }
        if let clients = value["clients"]?.array, !clients.contains(.string(Self.client)) { return nil }
        self.mode = mode
        self.name = name
        self.steps = steps.compactMap(\.object)
        configuration = value["configuration"]?.object ?? [:]
        provider = value["provider"]?.array
        rules = value["server"]?.array ?? []
        tokenLifetime = value["token_lifetime"]
    }

    /// Expands a scenario's token. `jwt ada 600` is a JWT of `ada` that expires 600 seconds after the start.
    static func token(_ text: String) -> String {
        let parts = text.split(separator: " ")
        guard parts.count == 3, parts[0] == "jwt", let seconds = Int(parts[2]) else { return text }
        return SignedToken.fake(subject: String(parts[1]), expiresAt: ScenarioClock.start + seconds)
    }
}
