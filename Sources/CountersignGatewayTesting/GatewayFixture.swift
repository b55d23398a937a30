internal import CountersignCore
public import CountersignGateway
public import CountersignJOSE
internal import Foundation

/// A real gateway on a free port of this machine, with one app, one RSA key pair, and a folder of its own.
///
/// ```swift
/// let fixture = try GatewayFixture(enforcement: .required)
/// defer { fixture.remove() }
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

    /// Starts the gateway.
    ///
    /// - Parameters:
    ///   - enforcement: How strictly the app is judged.
    ///   - limits: What a request may cost.
    ///   - configure: Changes what else the gateway runs with.
    /// - Throws: `GatewayError`, or an error of OpenSSL's when no key can be made.
    public init(
        enforcement: Enforcement = .required, limits: GatewayLimits = GatewayLimits(),
        configure: (inout GatewayConfiguration) -> Void = { _ in }
    ) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-" + UUID().uuidString)
        dataDirectory = folder.path
        apps = try AppDirectory(dataDirectory: dataDirectory)
        writeKey = try apps.createApp(id: "shop").writeKey
        signingKey = try SigningKey.generate(.rs256)
        _ = try apps.addKey(signingKey.publicKey.pem, description: "test key", to: "shop")
        try apps.setEnforcement(enforcement, for: "shop")
        var configuration = GatewayConfiguration(dataDirectory: dataDirectory)
        configuration.port = 0
        configuration.limits = limits
        configuration.stopGraceSeconds = 1
        configure(&configuration)
        gateway = try Gateway(configuration: configuration)
        try gateway.start()
    }

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

    /// Stops the gateway and deletes its folder.
    public func remove() {
        gateway.stop()
        try? FileManager.default.removeItem(atPath: dataDirectory)
    }
}
