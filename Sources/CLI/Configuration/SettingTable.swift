internal import GatewayModel

enum SettingTable {
    static let all: [Setting] =
        [database, databasePasswordFile, tokenKeyFile] + addresses + telemetry + operation + protection

    static let database = Setting(
        "database", .text("URL"),
        help:
            "PostgreSQL database to use instead of the data directory, for any number of gateways",
        show: { DatabaseAddress($0)?.description ?? "" }
    ) { configuration, text throws(Setting.Problem) in
        configuration.database = try Setting.database(text)
    }

    static let databasePasswordFile = Setting(
        "database-password-file", .path("PATH"),
        help: "file with the database's password; otherwise from the URL or libpq's files"
    ) { configuration, path throws(Setting.Problem) in
        try change(&configuration.database, of: "database") { $0.passwordFile = path }
    }

    static let tokenKeyFile = Setting(
        "token-key-file", .path("PATH"),
        help:
            "file with the key that encrypts secrets in the database, the same for every gateway; default: token-key in the data directory"
    ) { configuration, path throws(Setting.Problem) in
        try change(&configuration.database, of: "database") { $0.tokenKeyFile = path }
    }

    /// Changes `value`, which the setting `name` creates. Throws if that setting is not given.
    private static func change<Value>(
        _ value: inout Value?, of name: String, _ body: (inout Value) -> Void
    ) throws(Setting.Problem) {
        guard var changed = value else {
            throw Setting.Problem(text: "has no effect without the setting \(name)")
        }
        body(&changed)
        value = changed
    }

    private static let addresses: [Setting] = [
        Setting(
            "host", .text("ADDRESS"), default: "127.0.0.1",
            help: "address to listen on; 0.0.0.0 is every IPv4 address of this machine"
        ) { configuration, text throws(Setting.Problem) in configuration.host = try Setting.address(text) },
        Setting(
            "port", .integer("PORT", 0...65535), default: "8787",
            help: "port to listen on; 0 picks a free one"
        ) { $0.port = UInt16(clamping: Int($1) ?? 0) },
        Setting(
            "admin-host", .text("ADDRESS"),
            help:
                "address of a separate listener for operators; by default the dashboard is on the clients' listener"
        ) { configuration, text throws(Setting.Problem) in
            configuration.adminHost = try Setting.address(text)
        },
        Setting(
            "admin-port", .integer("PORT", 0...65_535), default: "8788",
            help: "port of the separate listener for operators; 0 picks a free one"
        ) { $0.adminPort = UInt16(clamping: Int($1) ?? 0) },
        Setting(
            "tls-certificate", .path("PATH"),
            help:
                "PEM file with the certificate and its chain; serves HTTPS; several names: several files, comma-separated"
        ) { tls(&$0, \.certificatePath, $1) },
        Setting(
            "tls-key", .path("PATH"),
            help: "PEM file with the private key; one for each certificate, in their order"
        ) { tls(&$0, \.keyPath, $1) },
        Setting(
            "tls-key-password", .text("TEXT"), isSecret: true, help: "password of the private keys"
        ) { configuration, password in
            configuration.tls = configuration.tls ?? TLSFiles(certificatePath: "", keyPath: "")
            configuration.tls?.keyPassword = password
        },
        Setting(
            "public-url", .text("URL"),
            help: "where clients reach the gateway, such as https://collect.example: the issuer of its tokens"
        ) { configuration, text throws(Setting.Problem) in configuration.publicURL = try Setting.origin(text)
        },
        Setting(
            "trusted-proxies", .text("RANGES"), default: "",
            help: "proxies whose X-Forwarded-For is trusted, comma-separated"
        ) { configuration, text throws(Setting.Problem) in
            configuration.trustedProxies = try Setting.ranges(text)
        },
        Setting(
            "metrics-from", .text("RANGES"), default: "127.0.0.0/8,::1",
            help: "addresses that may read /metrics, comma-separated"
        ) { configuration, text throws(Setting.Problem) in
            configuration.metricsFrom = try Setting.ranges(text)
        },
    ]

    private static let telemetry: [Setting] = [
        Setting(
            "otlp-endpoint", .text("URL"),
            help:
                "collector to export metrics and traces to by OTLP over HTTP, such as http://127.0.0.1:4318"
        ) { configuration, text throws(Setting.Problem) in
            configuration.telemetry = TelemetryRules(endpoint: try Setting.endpoint(text))
        },
        Setting(
            "otlp-headers", .text("LINES"), isSecret: true,
            help: "headers for the collector, such as Authorization: Bearer …, one per line"
        ) { configuration, text throws(Setting.Problem) in
            let fields = try Setting.headerFields(text)
            try change(&configuration.telemetry, of: "otlp-endpoint") { $0.headers = fields }
        },
        Setting(
            "otlp-ca-file", .path("PATH"),
            help: "PEM file with the certificates to trust for the collector instead of the system's"
        ) { configuration, path throws(Setting.Problem) in
            try change(&configuration.telemetry, of: "otlp-endpoint") { $0.certificateAuthorityFile = path }
        },
        Setting(
            "otlp-sample-ratio", .text("RATIO"), default: "0.01",
            help:
                "share of requests without a traceparent to record, 0 to 1; a traceparent decides for its request"
        ) { configuration, text throws(Setting.Problem) in
            guard let ratio = Double(text), (0...1).contains(ratio) else {
                throw Setting.Problem(text: "needs a number from 0 to 1, not '\(text)'")
            }
            configuration.telemetry?.sampleRatio = ratio
        },
    ]

    /// Sets one path of each certificate from a comma-separated list.
    private static func tls(
        _ configuration: inout GatewayConfiguration, _ path: WritableKeyPath<TLSFiles, String>, _ list: String
    ) {
        let none = TLSFiles(certificatePath: "", keyPath: "")
        var files = configuration.tls ?? none
        let texts = list.split(separator: ",", omittingEmptySubsequences: false).map {
            String($0.drop { $0 == " " })
        }
        files[keyPath: path] = texts[0]
        for (index, text) in texts.dropFirst().enumerated() {
            if files.others.count == index { files.others.append(none) }
            files.others[index][keyPath: path] = text
        }
        configuration.tls = files
    }

    private static let operation: [Setting] = [
        Setting(
            "log-level", .choice(LogLevel.allCases.map(\.rawValue)), default: LogLevel.info.rawValue,
            help: "how much is logged to standard error; JSON, or text on a terminal"
        ) { $0.logLevel = LogLevel(rawValue: $1) ?? .info },
        Setting(
            "drain-seconds", .duration(.seconds, 0...3600), default: "0",
            help: "how long new requests are still accepted after SIGTERM, while /readyz answers 503"
        ) { $0.drainSeconds = Double($1) ?? 0 },
        Setting(
            "stop-grace-seconds", .duration(.seconds, 0...3600), default: "10",
            help: "how long shutdown waits for slow clients and deliveries"
        ) { $0.stopGraceSeconds = Double($1) ?? 0 },
        Setting(
            "disk-floor-bytes", .size(0...(1 << 50)), \.diskFloorBytes,
            help: "free bytes on the disk below which nothing is stored (503)"),
        Setting(
            "backup-hours", .duration(.hours, 0...8_760), \.backups.hours,
            help: "hours between backups of the data directory; 0 disables them"),
        Setting("backup-keep", .integer("N", 1...1_000), \.backups.keep, help: "number of backups to keep"),
        Setting(
            "backup-folder", .path("PATH"),
            help: "where to put backups; default: the folder backups in the data directory"
        ) { $0.backups.folder = $1 },
        Setting(
            "event-files", .path("PATH"),
            help: "folder to which each app's events are also written every hour, as compressed NDJSON"
        ) { $0.eventFilesFolder = $1 },
    ]

    private static let protection: [Setting] = [
        Setting(
            "requests-per-second-per-address", .integer("N", 0...1_000_000),
            \.limits.requestsPerSecondPerAddress,
            help:
                "requests per second from one address, with bursts of five times as many (429); 0 is no limit"
        ),
        Setting(
            "requests-per-second-per-app", .integer("N", 0...1_000_000), \.limits.requestsPerSecondPerApp,
            help: "requests per second for one app, with bursts of five times as many (429); 0 is no limit"),
        Setting(
            "token-requests-per-second", .integer("N", 0...1_000_000), \.limits.tokenRequestsPerSecond,
            help:
                "token requests per second of one session or client, and registrations of one address (429); 0 is no limit"
        ),
        Setting(
            "connections", .integer("N", 1...1_000_000), \.limits.connections,
            help: "open connections; at the limit idle ones are closed, or slow ones of addresses with many"
        ),
        Setting(
            "connections-per-address", .integer("N", 1...1_000_000), \.limits.connectionsPerAddress,
            help: "open connections from one address; at the limit an idle one is closed, else the new one"),
        Setting(
            "idle-seconds", .duration(.seconds, 1...3_600), \.limits.idleSeconds,
            help: "time between two requests on a connection"),
        Setting(
            "body-bytes", .size(1_024...1_073_741_824), \.limits.bodyBytes,
            help: "bytes of a body, as sent and decompressed (413)"),
        Setting(
            "pending-bytes", .size(65_536...(1 << 40)), \.limits.pendingBytes,
            help: "bytes of events that may wait for the disk (503)"),
        Setting(
            "body-memory-bytes", .size(1_048_576...(1 << 40)), \.limits.bodyMemoryBytes,
            help: "bytes of request bodies and answers in memory (slowest closed, 503)"),
    ]
}
