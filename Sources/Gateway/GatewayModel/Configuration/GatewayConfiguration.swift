internal import CountersignCore
package import CountersignCrypto

/// The configuration of a gateway.
public struct GatewayConfiguration: Sendable {
    /// The folder of the gateway's data. Created with mode 0700 when it does not exist.
    public var dataDirectory: String

    /// The shared database of a cluster; nil stores everything in ``dataDirectory``.
    package var database: DatabaseAddress?

    /// The address to listen on: a literal IPv4 or IPv6 address. The default is reachable from this machine
    /// only.
    public var host = "127.0.0.1"

    /// The port to listen on; 0 selects a free port.
    public var port: UInt16 = 8787

    /// The address of a separate listener for the admin page and API; nil serves both on the main listener.
    public var adminHost: String?

    /// The port of ``adminHost``; 0 selects a free port.
    public var adminPort: UInt16 = 8788

    /// Seconds after ``drainSeconds`` in which the transfer of begun requests and responses must end.
    public var stopGraceSeconds = 10.0

    /// Seconds after ``Gateway/stop()`` in which new requests are still served and `/readyz` fails.
    ///
    /// In this time, load balancers can stop sending requests.
    public var drainSeconds = 0.0

    /// The certificate for HTTPS; nil serves HTTP, for use behind a proxy.
    public var tls: TLSFiles?

    /// The URL that clients use, such as `https://collect.example`: the issuer of the gateway's tokens. Nil
    /// uses the address of the listener.
    public var publicURL: String?

    /// Proxies whose `X-Forwarded-For` is trusted; empty by default.
    public var trustedProxies: [AddressRange] = []

    /// Addresses that may read `/metrics`; only this machine by default.
    public var metricsFrom = AddressRange.loopback

    package var telemetry: TelemetryRules?

    /// Free bytes on the disk below which nothing is stored: requests get 503 with `Retry-After`, and
    /// `/readyz` fails.
    public var diskFloorBytes = 256 * 1024 * 1024

    /// Scheduled backups of the data directory.
    public var backups = BackupRules()

    /// The folder for hourly event files of each app; nil writes no files.
    package var eventFilesFolder: String?

    /// The level of the log on standard error.
    public var logLevel = LogLevel.off

    package var logFormat = LogFormat.json

    /// Limits of requests and connections.
    public var limits = GatewayLimits()

    /// Threads of the main listener; nil uses one for each processor. With one thread, requests on different
    /// connections are handled in the order of their arrival, which tests use.
    package var loopCount: Int?

    /// The cost of hashing passwords. Tests that do not examine passwords use a lower cost.
    package var passwordCost = Scrypt.Cost.password

    /// The settings that the admin API shows.
    package var settings: [GatewaySetting] = []

    /// - Parameter dataDirectory: The folder of the gateway's data.
    public init(dataDirectory: String) {
        self.dataDirectory = dataDirectory
    }
}

extension GatewayConfiguration {
    package func url(port: UInt16) -> String { url(host: host, port: port) }

    package func adminURL(port: UInt16) -> String { url(host: adminHost ?? host, port: port) }

    /// The URL of the admin page for operators on other machines.
    package func dashboardURL(port: UInt16) -> String {
        adminHost == nil ? publicURL ?? adminURL(port: port) : adminURL(port: port)
    }

    /// Replaces the unspecified address by a loopback address, because browsers do not open `0.0.0.0`.
    private func url(host: String, port: UInt16) -> String {
        let host = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host
        return "\(tls == nil ? "http" : "https")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }

    /// URLs for clients, the issuer of the gateway's tokens first. Without a public URL, their hosts are the loopback
    /// names, and the address of the listener unless that address is unspecified.
    package func urls(port: UInt16) -> [String] {
        if let publicURL { return [publicURL] }
        let scheme = tls == nil ? "http" : "https"
        let isEverywhere = host == "0.0.0.0" || host == "::"
        let own = isEverywhere ? "localhost" : host.contains(":") ? "[\(host)]" : host
        return [own, "localhost", "127.0.0.1", "[::1]"].map { "\(scheme)://\($0):\(port)" }
    }
}

package struct GatewaySetting: Sendable {
    /// The name of the option without dashes, such as `log-level`.
    package let name: String
    /// Nil when unset; masked when secret.
    package let value: String?
    /// The source, such as `default` or `environment COUNTERSIGN_PORT`.
    package let origin: String
    /// One line, without a final full stop.
    package let help: String

    package init(name: String, value: String?, origin: String, help: String) {
        self.name = name
        self.value = value
        self.origin = origin
        self.help = help
    }
}

/// Certificate files for HTTPS. The gateway reads the files again when they change.
public struct TLSFiles: Sendable {
    /// The certificate chain, as PEM.
    public var certificatePath: String
    /// The private key, as PEM.
    public var keyPath: String
    /// The password of the private key; nil when the key is not encrypted.
    public var keyPassword: String?
    /// Certificates for other names. A client that sends a name (SNI) gets the first certificate for that name.
    public var others: [TLSFiles] = []

    /// This certificate and the others. ``keyPassword`` is the default for the keys of the others.
    package var all: [TLSFiles] {
        [self]
            + others.map { other in
                TLSFiles(
                    certificatePath: other.certificatePath, keyPath: other.keyPath,
                    keyPassword: other.keyPassword ?? keyPassword)
            }
    }

    /// - Parameters:
    ///   - certificatePath: The certificate chain, as PEM.
    ///   - keyPath: The private key, as PEM.
    ///   - keyPassword: The password of the private key; nil when the key is not encrypted.
    public init(certificatePath: String, keyPath: String, keyPassword: String? = nil) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        self.keyPassword = keyPassword
    }
}
