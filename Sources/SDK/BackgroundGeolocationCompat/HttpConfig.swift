internal import CountersignCore
internal import CountersignLocations

/// The settings of uploads.
public final class HttpConfig: SettingsPart {
    /// The method of uploads.
    public struct Method: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
        /// The name in capitals.
        public let rawValue: String

        /// Creates a method from its name, in any case. The client accepts POST, PUT, PATCH and OPTIONS.
        public init(rawValue: String) {
            self.rawValue = rawValue.uppercased()
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public init(stringLiteral value: String) {
            self.init(rawValue: value)
        }

        /// `POST`, the default.
        public static let post: Method = "POST"
        /// `PUT`.
        public static let put: Method = "PUT"
        /// `PATCH`.
        public static let patch: Method = "PATCH"
    }

    static var path: WritableKeyPath<LocationConfiguration, LocationConfiguration.HTTP> { \.http }
    var settings: Settings

    init(_ settings: Settings) {
        self.settings = settings
    }

    /// An `http` or `https` URL. Nothing is sent while it is empty.
    public var url: String {
        get { value.url }
        set { value.url = newValue }
    }

    /// The method of uploads.
    public var method: Method {
        get { Method(rawValue: value.method) }
        set { value.method = newValue.rawValue }
    }

    /// The member with the records; `"."` sends the record, or with `batchSync` the array, as the whole body.
    public var rootProperty: String {
        get { value.rootProperty }
        set { value.rootProperty = newValue }
    }

    /// Header fields of each request. Numbers and booleans become text; nil is omitted. With an access token the SDK
    /// sets `Authorization`.
    public var headers: [String: Any] {
        get { value.headers }
        set { value.headers = newValue.compactMapValues(headerText) }
    }

    /// Members of the body in addition to the records.
    public var params: [String: Any] {
        get { plain(value.params) }
        set { value.params = json(newValue) }
    }

    /// The time limit of a request, in milliseconds.
    public var timeout: Int {
        get { Int(Milliseconds(seconds: value.timeout).count) }
        set { value.timeout = Milliseconds(Int64(newValue)).seconds }
    }

    /// Whether records are sent automatically; otherwise only `sync()` sends them.
    public var autoSync: Bool {
        get { value.autoSync }
        set { value.autoSync = newValue }
    }

    /// Number of waiting records that starts automatic sending. A `motionchange` record is sent at once.
    public var autoSyncThreshold: Int {
        get { value.autoSyncThreshold }
        set { value.autoSyncThreshold = newValue }
    }

    /// Whether a request may have several records, in an array; otherwise each request has one record.
    public var batchSync: Bool {
        get { value.batchSync }
        set { value.batchSync = newValue }
    }

    /// Maximum number of records in a request with `batchSync`, up to 1,000; -1 for 1,000.
    public var maxBatchSize: Int {
        get { value.maxBatchSize }
        set { value.maxBatchSize = newValue }
    }

    /// Whether an HTML document with a status from 200 to 299 acknowledges the records. Not in the vendor's SDK.
    public var acceptsPages: Bool {
        get { value.acceptsPages }
        set { value.acceptsPages = newValue }
    }
}
