internal import CountersignCore
package import CountersignJOSE

/// How a gateway runs.
public struct GatewayConfiguration: Sendable {
    /// The folder that holds everything the gateway keeps. Made with mode 0700 when it does not exist.
    public var dataDirectory: String

    /// The database that holds everything instead, for several gateways; nil keeps everything in ``dataDirectory``.
    package var database: DatabaseAddress?

    /// The address to listen on: a literal IPv4 or IPv6 address. Only this machine can connect by default.
    public var host = "127.0.0.1"

    /// The port to listen on; 0 takes a free one.
    public var port: UInt16 = 8787

    /// Where the page and API for operators are served alone, apart from the apps' requests; nil serves them beside those.
    public var adminHost: String?

    /// The port of ``adminHost``; 0 takes a free one.
    public var adminPort: UInt16 = 8788

    /// How long requests that have begun may still take to arrive after ``Gateway/stop()``, in seconds.
    public var stopGraceSeconds = 10.0

    /// How long it still takes new requests after ``Gateway/stop()`` while `/readyz` already says no, in seconds.
    ///
    /// Gives load balancers the time to notice.
    public var drainSeconds = 0.0

    /// The certificate to serve HTTPS with; nil serves HTTP, for use behind a proxy.
    public var tls: TLSFiles?

    /// Where clients reach the gateway, such as `https://collect.example`: the issuer of its tokens. Nil stands for the
    /// address that it listens on.
    public var publicURL: String?

    /// Proxies whose `X-Forwarded-For` is believed; none by default.
    public var trustedProxies: [AddressRange] = []

    /// Who may read `/metrics`; only this machine by default.
    public var metricsFrom = AddressRange.loopback

    /// Where metrics and traces are exported; nil exports none.
    package var telemetry: TelemetryRules?

    /// Free bytes on the disk below which nothing is stored: 503 with `Retry-After`, and `/readyz` says no.
    public var diskFloorBytes = 256 * 1024 * 1024

    /// Copies of the data directory that the gateway makes automatically; see ``BackupRules``.
    public var backups = BackupRules()

    /// The folder that each app's events are written to as files, an hour at a time; nil writes none.
    package var eventFilesFolder: String?

    /// How much is logged to standard error, as JSON; see ``LogLevel``.
    public var logLevel = LogLevel.off

    /// How the log is written.
    package var logFormat = LogFormat.json

    /// What a request may cost; see ``GatewayLimits``.
    public var limits = GatewayLimits()

    /// Threads that serve the main listener; nil takes one for each processor. What a test sends on several connections is seen
    /// in its order by one thread only.
    package var loopCount: Int?

    /// What it costs to try a password that is set or sent here, right or wrong; tests that are not about it take less.
    package var passwordCost = Scrypt.Cost.password

    /// What the admin API shows of how the gateway was set up.
    package var settings: [GatewaySetting] = []

    /// - Parameter dataDirectory: The folder that holds everything the gateway keeps.
    public init(dataDirectory: String) {
        self.dataDirectory = dataDirectory
    }
}

extension GatewayConfiguration {
    /// The address that it listens on, as a URL.
    package func url(port: UInt16) -> String { url(host: host, port: port) }

    /// Where operators reach it when their listener has this port.
    package func adminURL(port: UInt16) -> String { url(host: adminHost ?? host, port: port) }

    /// Where all addresses are listened on, by this machine's own: a browser opens no `0.0.0.0`.
    private func url(host: String, port: UInt16) -> String {
        let host = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host
        return "\(tls == nil ? "http" : "https")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }

    /// Where clients reach the gateway when it listens on this port, the issuer of its tokens first. Without a public
    /// URL it has only the names that no other machine can have.
    package func urls(port: UInt16) -> [String] {
        if let publicURL { return [publicURL] }
        let scheme = tls == nil ? "http" : "https"
        let isEverywhere = host == "0.0.0.0" || host == "::"
        let own = isEverywhere ? "localhost" : host.contains(":") ? "[\(host)]" : host
        return [own, "localhost", "127.0.0.1", "[::1]"].map { "\(scheme)://\($0):\(port)" }
    }
}

/// One setting as operators see it.
package struct GatewaySetting: Sendable {
    /// As in `--log-level` without the dashes.
    package let name: String
    /// Nil when nothing stands for it; masked when it is secret.
    package let value: String?
    /// Such as `default` or `environment COUNTERSIGN_PORT`.
    package let origin: String
    /// One line, without a full stop.
    package let help: String

    package init(name: String, value: String?, origin: String, help: String) {
        self.name = name
        self.value = value
        self.origin = origin
        self.help = help
    }
}

/// Files that HTTPS is served with. They are read again when they change.
public struct TLSFiles: Sendable {
    /// The certificate and those that lead to its root, as PEM.
    public var certificatePath: String
    /// The private key, as PEM.
    public var keyPath: String
    /// What the key is encrypted with; nil when it is not.
    public var keyPassword: String?

    /// - Parameters:
    ///   - certificatePath: The certificate and those that lead to its root, as PEM.
    ///   - keyPath: The private key, as PEM.
    ///   - keyPassword: What the key is encrypted with; nil when it is not.
    public init(certificatePath: String, keyPath: String, keyPassword: String? = nil) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        self.keyPassword = keyPassword
    }
}

/// What one request, one connection and one address may cost. Each limit has its own answer.
public struct GatewayLimits: Sendable {
    /// Bytes of the request line and all header fields together; beyond it 431 (or 414 for the request line).
    public var headerBytes = 16 * 1024
    /// Header fields of a request; beyond it 431.
    public var headerFields = 100
    /// Bytes of the body as sent, and as decompressed; beyond it 413.
    public var bodyBytes = 4 * 1024 * 1024
    /// How many times larger a body may get by decompression; beyond it 413. Bodies under 64 KiB are exempt.
    public var compressionRatio = 100
    /// How deep JSON may nest; beyond it 400.
    public var jsonDepth = 64
    /// Events of one batch; beyond it 413.
    public var batchEvents = 1_000
    /// Bytes of one event as JSON; beyond it the event is rejected and its neighbours are stored.
    public var eventBytes = 512 * 1024
    /// Seconds until the header of a request must be complete.
    public var headerSeconds = 10
    /// Seconds until the body of a request must be complete.
    public var bodySeconds = 30
    /// Seconds that a connection may idle between requests.
    public var idleSeconds = 30
    /// Open connections; beyond it one that idles is closed for a new one, then the slowest of an address that has more
    /// than the newcomer's, and where there is none, the new one.
    public var connections = 4_096
    /// Open connections of one address (of one /64 for IPv6); beyond it one of them that idles is closed for a new one,
    /// and where there is none, the new one. Trusted proxies have no such limit.
    public var connectionsPerAddress = 256
    /// Requests a second of one address (of one /64 for IPv6), five times as many at once; beyond it 429 with
    /// `Retry-After`. 0 sets no limit. This machine's own requests have none unless a proxy passes them on.
    public var requestsPerSecondPerAddress = 1_000
    /// Requests a second of one app, five times as many at once; beyond it 429 with `Retry-After`. 0 sets no limit.
    public var requestsPerSecondPerApp = 0
    /// Requests for tokens a second of one session or one client, and registrations of one address, five times as many
    /// at once; beyond it 429 with `Retry-After`. 0 sets no limit.
    public var tokenRequestsPerSecond = 20
    /// Bytes of events that wait for the disk; beyond it 503 with `Retry-After`.
    public var pendingBytes = 64 * 1024 * 1024
    /// Bytes of request bodies and answers in memory, of all connections together; beyond it the slowest are closed, and
    /// where there are none, 503 with `Retry-After`.
    public var bodyMemoryBytes = 64 * 1024 * 1024

    /// The defaults.
    public init() {}
}
