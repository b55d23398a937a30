internal import CountersignCore
public import CountersignGateway
public import CountersignJOSE
package import Foundation
public import GatewayModel
public import GatewayStorage

/// A real gateway on a free local port, with one app and its own data directory, which are deleted with this object.
/// All fixtures of a process share the RSA keys and, on SQLite, the write key. `COUNTERSIGN_TEST_STORAGE=postgresql`
/// adds a database in the server of `scripts/postgresql.sh run`.
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

    package let place: TestStorage
    private let transport: TestTransport

    /// Starts the gateway.
    ///
    /// - Parameters:
    ///   - enforcement: The app's enforcement.
    ///   - limits: The gateway's limits.
    ///   - configure: Changes the configuration.
    /// - Throws: `GatewayError`, `JOSEError` if a key cannot be generated, or an error of the file system.
    public convenience init(
        enforcement: Enforcement = .required, limits: GatewayLimits = GatewayLimits(),
        configure: (inout GatewayConfiguration) -> Void = { _ in }
    ) throws {
        try self.init(.live, enforcement: enforcement, limits: limits, configure: configure)
    }

    package init(
        _ transport: TestTransport, enforcement: Enforcement = .required,
        limits: GatewayLimits = GatewayLimits(), configure: (inout GatewayConfiguration) -> Void = { _ in },
        now: @escaping @Sendable () -> Date = { Date() }
    ) throws {
        self.transport = transport
        place = try TestStorage(.app)
        dataDirectory = place.folder
        apps = try place.openControl()
        writeKey = place.writeKey ?? ""
        signingKey = try SharedKeys.app()
        if enforcement != .required { try apps.setEnforcement(enforcement, for: "shop") }
        var configuration = place.configuration
        configuration.limits = limits
        configure(&configuration)
        gateway = try Gateway(configuration: configuration, now: now)
        try transport.start(gateway)
    }

    package func client() throws -> any TestClient { try transport.client(of: gateway) }

    /// Changes the directory as another process would. The gateway has loaded the change when this returns.
    package func edit(_ change: (AppDirectory) throws -> Void) throws {
        try change(apps)
        try gateway.refreshApps()
    }

    /// A token for a user, signed with the app's key.
    ///
    /// - Parameters:
    ///   - userID: The user; becomes `sub`.
    ///   - lifetime: Seconds until it expires; may be negative.
    ///   - key: The signing key; nil uses the app's.
    /// - Returns: A compact JWS.
    /// - Throws: `JOSEError` with code `signingFailed`.
    public func token(for userID: String, lifetime: Double = 600, key: SigningKey? = nil) throws -> String {
        try (key ?? signingKey).sign(claims: [
            "sub": .string(userID), "exp": .integer(Int64(Date().timeIntervalSince1970 + lifetime)),
        ])
    }

    /// All stored events in order, as text, with the given columns.
    package func rows(_ columns: String..., where condition: String? = nil) throws -> [[String?]] {
        try place.events(columns, where: condition)
    }

    deinit { gateway.stop() }
}
