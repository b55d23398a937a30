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

    /// Seconds that requests in flight may take to arrive after ``Gateway/stop()``.
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

    /// URLs for clients, the issuer of the gateway's tokens first. Without a public URL these are loopback
    /// names, and the address of the listener unless it is unspecified.
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

/// Certificate files for HTTPS. They are read again when they change.
public struct TLSFiles: Sendable {
    /// The certificate chain, as PEM.
    public var certificatePath: String
    /// The private key, as PEM.
    public var keyPath: String
    /// The password of the private key; nil when the key is not encrypted.
    public var keyPassword: String?

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

/// Limits of requests, connections and addresses. Each limit has its own status code.
public struct GatewayLimits: Sendable {
    /// Bytes of the request line and all header fields together; more get 431.
    public var headerBytes = 16 * 1024
    /// Header fields of a request; more get 431.
    public var headerFields = 100
    /// Bytes of the body, both as sent and as decompressed; more get 413.
    public var bodyBytes = 4 * 1024 * 1024
    /// Maximum ratio of the decompressed to the compressed size; more get 413. Bodies under 64 KiB are
    /// exempt.
    public var compressionRatio = 100
    /// Nesting depth of JSON; more gets 400.
    public var jsonDepth = 64
    /// Events of one batch; more get 413.
    public var batchEvents = 1_000
    /// Bytes of one event as JSON. A larger event is rejected; the other events of the batch are stored.
    public var eventBytes = 512 * 1024
    /// Seconds until the header of a request must be complete.
    public var headerSeconds = 10
    /// Seconds until the body of a request must be complete.
    public var bodySeconds = 30
    /// Seconds that a connection may be idle between requests.
    public var idleSeconds = 30
    /// Open connections. Beyond the limit, up to 32 idle connections are closed for a new one. Without idle
    /// connections, up to 32 connections of addresses with more connections than the client's address are
    /// closed, or else the new one.
    public var connections = 4_096
    /// Open connections of one address (one /64 for IPv6). Beyond the limit, an idle connection of the
    /// address is closed for the new one, or else the new one is closed. Trusted proxies are exempt.
    public var connectionsPerAddress = 256
    /// Requests a second of one address (one /64 for IPv6), with a burst of five times as many; more get 429
    /// with `Retry-After`. 0 sets no limit. Requests from this machine are exempt, unless a proxy forwards
    /// them.
    public var requestsPerSecondPerAddress = 1_000
    /// Requests a second of one app, with a burst of five times as many; more get 429 with `Retry-After`. 0
    /// sets no limit.
    public var requestsPerSecondPerApp = 0
    /// Token requests a second of one session or client, and registrations of one address, with a burst of
    /// five times as many; more get 429 with `Retry-After`. 0 sets no limit.
    public var tokenRequestsPerSecond = 20
    /// Bytes of events that wait to be stored; more get 503 with `Retry-After`.
    public var pendingBytes = 64 * 1024 * 1024
    /// Bytes of request bodies and responses in memory, of all connections together. Beyond the limit, the
    /// slowest connections are closed; without such connections, requests get 503 with `Retry-After`.
    public var bodyMemoryBytes = 64 * 1024 * 1024

    /// The defaults.
    public init() {}
}
