public import CountersignCore
internal import CountersignTransport
public import Foundation

/// How a `LocationClient` records and uploads.
public struct LocationConfiguration: Sendable {
    /// Where records go, and when.
    public struct HTTP: Sendable, Hashable {
        /// `http` or `https`; empty: nothing is sent.
        public var url = ""
        /// `POST`, `PUT`, `PATCH` or `OPTIONS`.
        public var method = "POST"
        /// Header fields of each request. `Authorization` is the SDK's where there is an access token.
        public var headers: [String: String] = [:]
        /// Members of the body in addition to the records.
        public var params: JSONObject = [:]
        /// The member that holds the records; `.` sends a record as the whole body.
        public var rootProperty = "location"
        /// Seconds that a request may take.
        public var timeout: TimeInterval = 60
        /// Whether records are sent automatically; otherwise only `sync()` sends them.
        public var autoSync = true
        /// Records that must wait before they are sent automatically. One with the event `motionchange` waits
        /// for none.
        public var autoSyncThreshold = 0
        /// Whether a request carries many records, as an array.
        public var batchSync = false
        /// Records in one request at most; -1 for all, up to 1,000.
        public var maxBatchSize = -1

        /// Whether an HTML document with a status from 200 to 299 acknowledges the records. Such an answer is
        /// usually a login page of the network, so by default the records stay queued. Every other body
        /// acknowledges them.
        public var acceptsPages = false

        /// Whether bodies over 1 KiB are compressed with gzip. Default: false, because not every server
        /// answers 415 to a body that it cannot read.
        public var gzip = false

        /// Makes the defaults.
        public init() {}
    }

    /// The settings of storage.
    public struct Persistence: Sendable, Hashable {
        /// How instants are written in records.
        public struct TimestampFormat: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
            /// A stable word.
            public let rawValue: String

            /// Any word.
            public init(rawValue: String) {
                self.rawValue = rawValue
            }

            // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
            public init(stringLiteral value: String) {
                self.init(rawValue: value)
            }

            /// `2026-01-31T23:59:59.999Z`.
            public static let iso: TimestampFormat = "iso"
            /// Milliseconds since 1970.
            public static let epoch: TimestampFormat = "epoch"
        }

        /// In which order records are sent.
        public struct OrderDirection: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
            /// In capitals.
            public let rawValue: String

            /// Any word, in any case.
            public init(rawValue: String) {
                self.rawValue = rawValue.uppercased()
            }

            // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
            public init(stringLiteral value: String) {
                self.init(rawValue: value)
            }

            /// As they were recorded.
            public static let oldestFirst: OrderDirection = "ASC"
            /// Beginning with the last one.
            public static let newestFirst: OrderDirection = "DESC"
        }

        /// In which order records are sent. Limits push out the oldest in both.
        public var locationsOrderDirection = OrderDirection.oldestFirst
        /// Days that a record waits at most; 0 and below for 30. Counted as in `QueueLimits.maximumAge`.
        public var maxDaysToPersist = -1
        /// Maximum number of waiting records; the newest are kept. 0 stores nothing, below 0 means 100,000.
        public var maxRecordsToPersist = -1
        /// Members that are put into each record's `extras`.
        public var extras: JSONObject = [:]
        /// JSON with `<%= latitude %>` and the like, instead of the default shape; empty for that. Texts are
        /// not quoted by themselves.
        public var locationTemplate = ""
        /// How instants are written.
        public var timestampFormat = TimestampFormat.iso

        /// Makes the defaults.
        public init() {}
    }

    /// How `LocationClient.start()` asks Core Location. Without Core Location nothing of it matters.
    ///
    /// In the background locations come only to an app that declares `location` under `UIBackgroundModes` in
    /// its `Info.plist`.
    public struct Positioning: Sendable, Hashable {
        /// Metres that a location may be wrong by; 0 and below for the best that the device can do, which
        /// takes the most power.
        public var desiredAccuracy: Double = 0
        /// Metres to move before the next location; 0 and below for every one.
        public var distanceFilter: Double = 10

        /// Makes the defaults.
        public init() {}
    }

    /// Where records go, and when.
    public var http = HTTP()
    /// Under which token.
    public var authorization = AuthorizationConfiguration()
    /// The settings of storage.
    public var persistence = Persistence()
    /// The facts about the app and the device that each record carries, as `extras.context`. Records of a
    /// `locationTemplate` do not carry them.
    public var context = EventContext()
    /// How Core Location is asked.
    public var positioning = Positioning()
    /// Commands that a server may put into `background_geolocation` of its answers; all others are ignored.
    /// No command ever changes a URL, a header field, a token or a template.
    public var allowedCommands: Set<String> = ["start", "stop", "setConfig"]

    /// Tells clients of one app apart: each has records and tokens of its own.
    public var instanceName = "locations"
    /// As `CountersignConfiguration.dataDirectory`.
    public var dataDirectory: URL?
    /// Where tokens are kept between two runs; nil for the Keychain on Apple platforms and a file elsewhere.
    public var tokenStore: (any TokenStore)?
    /// The delays after failures of the server or the network. Default: from 2 s up to 3 minutes, without limit.
    public var networkRetry = RetryPolicy.network
    /// The level of the log, which is the system's log on Apple platforms and standard error elsewhere. Setting it
    /// replaces `log`; nil disables logging. Default: warnings.
    public var logLevel: CountersignLog.Level? = .warning {
        didSet { log = logLevel.map { .standard($0) } }
    }
    /// Receives the log lines; nil for no logging. Default: as `logLevel` says.
    public var log: CountersignLog? = .standard(.warning)

    /// Called for each answer to a refresh of the access token, and for each that did not come, on a thread
    /// of the SDK.
    public var onAuthorization: (@Sendable (AuthorizationEvent) -> Void)?
    /// Called for each attempt to upload, on a thread of the SDK.
    public var onHTTP: (@Sendable (UploadEvent) -> Void)?
    /// Called when Core Location says whether it may be used, or that it has failed, on a thread of the SDK.
    public var onPositioning: (@Sendable (PositioningStatus) -> Void)?
    /// Called for each location that was stored, with the record, on a thread of the SDK.
    public var onLocation: (@Sendable (JSONObject) -> Void)?

    /// Makes a configuration that records and sends nothing yet.
    public init() {}
}

/// One attempt to upload records.
public struct UploadEvent: Sendable, Hashable {
    /// True for a status from 200 to 299, unless an HTML document came back
    /// (`LocationConfiguration.HTTP.acceptsPages`).
    public let isSuccess: Bool
    /// The status; 0 if there was no answer.
    public let status: Int
    /// The answer's body.
    public let responseText: String
    /// The error; nil on success. Safe to log.
    public let error: String?
}

extension LocationConfiguration.HTTP {
    /// The URL of the server; nil if not set or not valid.
    var endpoint: URL? {
        guard let url = URL(string: url.trimmingCharacters(in: .whitespacesAndNewlines)),
            ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false
        else { return nil }
        return url
    }

    /// Whether an answer says that the server has the records.
    func hasTaken(_ response: TransportResponse) -> Bool {
        (200..<300).contains(response.status) && (acceptsPages || !HTMLDocument.begins(response.body))
    }

    var flushPolicy: FlushPolicy {
        guard autoSync, endpoint != nil else { return .manual }
        return FlushPolicy(eventCount: max(1, autoSyncThreshold), interval: nil, onBackground: true)
    }

    var batchEvents: Int {
        guard batchSync else { return 1 }
        return maxBatchSize > 0 ? min(maxBatchSize, 1_000) : 1_000
    }
}

extension LocationConfiguration.Persistence {
    var limits: QueueLimits {
        var limits = QueueLimits()
        if maxDaysToPersist > 0 { limits.maximumAge = TimeInterval(maxDaysToPersist) * 86_400 }
        if maxRecordsToPersist > 0 { limits.maximumEvents = maxRecordsToPersist }
        return limits
    }
}
