internal import CountersignCore
public import CountersignGateway
public import CountersignJOSE
internal import CountersignSQLite
internal import Foundation
public import GatewayModel
public import GatewayStorage

/// A real gateway on a free port of this machine, with one app and its own folder, which go with this object. All of a
/// process share one RSA key pair.
///
/// ```swift
/// let fixture = try GatewayFixture(enforcement: .required)
/// let token = try fixture.token(for: "user-1")
/// ```
public final class GatewayFixture: Sendable {
    /// The app's id.
    public let appID = "shop"
    /// The app's write key.
    public let writeKey: String
    /// The private half of the app's primary key.
    public let signingKey: SigningKey
    /// The running gateway.
    public let gateway: Gateway
    /// The apps of the gateway's data directory.
    public let apps: AppDirectory
    /// The gateway's data directory.
    public let dataDirectory: String

    /// How tests reach the gateway.
    private let transport: TestTransport

    /// Keys cost more than a test: one signs for all gateways of the process, one for those who are nobody to them.
    private static let sharedKey = Result { try SigningKey.generate(.rs256) }
    private static let foreignKey = Result { try SigningKey.generate(.rs256) }

    /// The private half of a key that no app has.
    package static func strangersKey() throws -> SigningKey { try foreignKey.get() }

    /// Starts the gateway.
    ///
    /// - Parameters:
    ///   - enforcement: How strictly the app is judged.
    ///   - limits: What a request may cost.
    ///   - configure: Changes what else the gateway runs with.
    /// - Throws: `GatewayError`, or an error of OpenSSL's when no key can be made.
    public convenience init(
        enforcement: Enforcement = .required, limits: GatewayLimits = GatewayLimits(),
        configure: (inout GatewayConfiguration) -> Void = { _ in }
    ) throws {
        try self.init(.live, enforcement: enforcement, limits: limits, configure: configure)
    }

    /// The same for tests that say how they reach it.
    package init(
        _ transport: TestTransport, enforcement: Enforcement = .required,
        limits: GatewayLimits = GatewayLimits(),
        configure: (inout GatewayConfiguration) -> Void = { _ in }
    ) throws {
        self.transport = transport
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-" + UUID().uuidString)
        dataDirectory = folder.path
        try FolderTemplate.copy(to: folder)
        apps = try AppDirectory(dataDirectory: dataDirectory)
        writeKey = try apps.createApp(id: "shop").writeKey
        signingKey = try Self.sharedKey.get()
        _ = try apps.addKey(signingKey.publicKey.pem, description: "test key", to: "shop")
        try apps.setEnforcement(enforcement, for: "shop")
        var configuration = GatewayConfiguration(dataDirectory: dataDirectory)
        configuration.port = 0
        configuration.limits = limits
        configuration.stopGraceSeconds = 1
        configure(&configuration)
        gateway = try Gateway(configuration: configuration)
        try transport.start(gateway)
    }

    /// One who sends requests to the gateway.
    package func client() throws -> any TestClient { try transport.client(of: gateway) }

    /// A token for a user, signed with the app's key.
    ///
    /// - Parameters:
    ///   - userID: The user; becomes `sub`.
    ///   - lifetime: Seconds until it expires; may be negative.
    ///   - key: Who signs it; the app's key when nil.
    /// - Returns: A compact JWS.
    /// - Throws: An error of OpenSSL's when it cannot sign.
    public func token(for userID: String, lifetime: Double = 600, key: SigningKey? = nil) throws -> String {
        try (key ?? signingKey).sign(claims: [
            "sub": .string(userID), "exp": .integer(Int64(Date().timeIntervalSince1970 + lifetime)),
        ])
    }

    /// What a query finds in the file of events, as text.
    package func rows(_ query: String, columns: Int32) throws -> [[String?]] {
        let database = try SQLiteConnection(path: dataDirectory + "/events.sqlite", mode: .readOnly)
        return try database.all(query) { row throws(SQLiteError) in
            (0..<columns).map { row.optionalText($0) }
        }
    }

    deinit {
        gateway.stop()
        try? FileManager.default.removeItem(atPath: dataDirectory)
    }
}
