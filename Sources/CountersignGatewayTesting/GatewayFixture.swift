internal import CountersignCore
public import CountersignGateway
public import CountersignJOSE
package import Foundation
public import GatewayModel
public import GatewayStorage

/// A real gateway on a free port of this machine, with one app and its own folder, which go with this object. All of a
/// process share the RSA key pairs of the app and of the token service, and on SQLite the app's write key. With `COUNTERSIGN_TEST_STORAGE=postgresql` it has a database of its own too, in the server
/// of `scripts/postgresql.sh run`.
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

    /// Where it keeps everything.
    package let place: TestPlace
    /// How tests reach the gateway.
    private let transport: TestTransport

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

    /// The same for tests that say how they reach it, and by which clock it goes.
    package init(
        _ transport: TestTransport, enforcement: Enforcement = .required,
        limits: GatewayLimits = GatewayLimits(), configure: (inout GatewayConfiguration) -> Void = { _ in },
        now: @escaping @Sendable () -> Date = { Date() }
    ) throws {
        self.transport = transport
        place = try TestPlace(.app)
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

    /// What is kept of all events in the order in which they were stored, as text, by the names of columns.
    package func rows(_ columns: String..., where condition: String? = nil) throws -> [[String?]] {
        try place.events(columns, where: condition)
    }

    deinit { gateway.stop() }
}
