public import CountersignCore
internal import CountersignTransport
public import Foundation

/// The configuration of a `LocationClient`.
public struct LocationConfiguration: Sendable {
    /// The server, and when to send.
    public struct HTTP: Sendable, Hashable {
        /// An `http` or `https` URL. If it is empty, nothing is sent.
        public var url = ""
        /// `POST`, `PUT`, `PATCH` or `OPTIONS`.
        public var method = "POST"
        /// Header fields of each request. The SDK sets `Authorization` if there is an access token.
        public var headers: [String: String] = [:]
        /// Members of the body in addition to the records. Not sent if the whole body is an array.
        public var params: JSONObject = [:]
        /// The member with the records; `.` sends the record, or with `batchSync` the array, as the whole body.
        public var rootProperty = "location"
        /// Time limit for a request, in seconds.
        public var timeout: TimeInterval = 60
        /// Whether records are sent automatically; otherwise only `sync()` sends them.
        public var autoSync = true
        /// The number of waiting records that starts automatic sending. A record with the event `motionchange` is
        /// sent at once.
        public var autoSyncThreshold = 0
        /// Whether a request has many records, as an array.
        public var batchSync = false
        /// Records in one request at most with `batchSync`, up to 1,000; 0 and below for 1,000.
        public var maxBatchSize = -1

        /// Whether an HTML document with a status from 200 to 299 acknowledges the records. By default the records stay
        /// queued, because such a document is usually a login page of the network. Every other body acknowledges them.
        public var acceptsPages = false

        /// Whether bodies over 1 KiB are compressed with gzip. After 415 the SDK stops compressing for that server.
        /// Default: false, because some servers report an unknown encoding with another status.
        public var gzip = false

        /// Makes the default settings.
        public init() {}
    }

    /// The settings of storage.
    public struct Persistence: Sendable, Hashable {
        /// The format of instants in records.
        public struct TimestampFormat: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
            /// A stable word, such as `iso`.
            public let rawValue: String

            /// Creates a value from its word. Words that this version does not define are allowed.
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

        /// The order in which records are sent.
        public struct OrderDirection: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
            /// The order in capitals: `ASC` or `DESC`.
            public let rawValue: String

            /// Creates a value from its word, in any case. Words that this version does not define are allowed.
            public init(rawValue: String) {
                self.rawValue = rawValue.uppercased()
            }

            // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
            public init(stringLiteral value: String) {
                self.init(rawValue: value)
            }

            /// In the order of recording.
            public static let oldestFirst: OrderDirection = "ASC"
            /// The newest record first.
            public static let newestFirst: OrderDirection = "DESC"
        }

        /// The order in which records are sent. Limits delete the oldest records in both orders.
        public var locationsOrderDirection = OrderDirection.oldestFirst
        /// Maximum days that a record waits; 0 and below for 30. Time in which the device is off does not count.
        public var maxDaysToPersist = -1
        /// Maximum number of waiting records; the newest stay. 0 stores nothing, below 0 means 100,000.
        public var maxRecordsToPersist = -1
        /// Members that are added to each record's `extras`.
        public var extras: JSONObject = [:]
        /// JSON with tags such as `<%= latitude %>`; empty for the default shape. Texts are not quoted automatically.
        public var locationTemplate = ""
        /// The format of instants.
        public var timestampFormat = TimestampFormat.iso

        /// Makes the default settings.
        public init() {}
    }

    /// The settings of Core Location for `LocationClient.start()`. Without Core Location they have no effect.
    ///
    /// In the background, only an app with `location` under `UIBackgroundModes` in its `Info.plist` gets locations.
    /// The system never pauses the updates of a resting device, so call `stop()` to save power.
    public struct Positioning: Sendable, Hashable {
        /// The desired accuracy in metres; 0 and below for the device's best, which takes the most power.
        public var desiredAccuracy: Double = 0
        /// Metres to move before the next location; 0 and below for no filter.
        public var distanceFilter: Double = 10

        /// Makes the default settings.
        public init() {}
    }

    /// The server, and when to send.
    public var http = HTTP()
    /// The access token and its refresh settings.
    public var authorization = AuthorizationConfiguration()
    /// The settings of storage.
    public var persistence = Persistence()
    /// The facts about the app and the device that each record carries, as `extras.context`, except for records of a
    /// `locationTemplate`.
    public var context = EventContext()
    /// The settings of Core Location.
    public var positioning = Positioning()
    /// Commands that a server may send in `background_geolocation`; all others are ignored. No command ever changes a
    /// URL, a header field, a token or a template.
    public var allowedCommands: Set<String> = ["start", "stop", "setConfig"]

    /// Distinguishes clients of one app: each has its own records and tokens.
    public var instanceName = "locations"
    /// The parent of the directories of all instances; nil for one below the user's Application Support directory.
    /// Not an app group's container on iOS: the system ends a process suspended while it holds a lock there.
    public var dataDirectory: URL?
    /// The store of tokens between two runs; nil for the Keychain on Apple platforms and a file elsewhere.
    public var tokenStore: (any TokenStore)?
    /// The delays after failures of the server or network. Default: from 2 s up to 3 minutes, without giving up.
    public var networkRetry = RetryPolicy.network
    /// The level of the log, which is the system's log on Apple platforms and standard error elsewhere. Setting it
    /// replaces `log`; nil disables logging. Default: warnings.
    public var logLevel: CountersignLog.Level? = .warning {
        didSet { log = logLevel.map { .standard($0) } }
    }
    /// Receives the log lines; nil for no logging. Default: the log that `logLevel` describes.
    public var log: CountersignLog? = .standard(.warning)

    /// Called after each refresh of the access token, with or without a response, on a thread of the SDK.
    public var onAuthorization: (@Sendable (AuthorizationEvent) -> Void)?
    /// Called after each attempt to upload, on a thread of the SDK.
    public var onHTTP: (@Sendable (UploadEvent) -> Void)?
    /// Called when Core Location reports the permission or an error, on a thread of the SDK.
    public var onPositioning: (@Sendable (PositioningStatus) -> Void)?
    /// Called with the record of each stored location, on a thread of the SDK.
    public var onLocation: (@Sendable (JSONObject) -> Void)?

    /// Makes the default settings. Nothing is sent until `http.url` is set.
    public init() {}
}

/// One attempt to upload records.
public struct UploadEvent: Sendable, Hashable {
    /// True for a status from 200 to 299, unless the response is an HTML document (see `HTTP.acceptsPages`).
    public let isSuccess: Bool
    /// The status; 0 without a response.
    public let status: Int
    /// The response's body.
    public let responseText: String
    /// The error; nil on success. Safe to log.
    public let error: String?
}

extension LocationConfiguration.HTTP {
    /// Nil if the URL is not set or not valid.
    var endpoint: URL? { URL(server: url) }

    func acknowledges(_ response: TransportResponse) -> Bool {
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
