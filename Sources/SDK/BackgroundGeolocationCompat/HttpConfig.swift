internal import CountersignCore
internal import CountersignLocations

/// Where records go, and when.
public final class HttpConfig {
    /// The method of uploads.
    public struct Method: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
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

        /// The default.
        public static let post: Method = "POST"
        /// In place of `POST`.
        public static let put: Method = "PUT"
        /// In place of `POST`.
        public static let patch: Method = "PATCH"
    }

    private var settings: Settings

    init(_ settings: Settings) {
        self.settings = settings
    }

    var value: LocationConfiguration.HTTP {
        get { settings.configuration.http }
        set { settings.change { $0.http = newValue } }
    }

    /// Keeps what it says, in another place from now on.
    func move(to settings: Settings) {
        let value = value
        self.settings = settings
        self.value = value
    }

    /// `http` or `https`; empty: nothing is sent.
    public var url: String {
        get { value.url }
        set { value.url = newValue }
    }

    /// The method of uploads.
    public var method: Method {
        get { Method(rawValue: value.method) }
        set { value.method = newValue.rawValue }
    }

    /// The member that holds the records; `"."` puts a record in the body's own place.
    public var rootProperty: String {
        get { value.rootProperty }
        set { value.rootProperty = newValue }
    }

    /// Header fields of each request. A number or boolean becomes text; nil is left out. `Authorization` is the SDK's where there is an access token.
    public var headers: [String: Any] {
        get { value.headers }
        set { value.headers = newValue.compactMapValues(headerText) }
    }

    /// Members that stand beside the records.
    public var params: [String: Any] {
        get { plain(value.params) }
        set { value.params = json(newValue) }
    }

    /// Milliseconds that a request may take.
    public var timeout: Int {
        get { Int(Milliseconds(seconds: value.timeout).count) }
        set { value.timeout = Milliseconds(Int64(newValue)).seconds }
    }

    /// Whether records are sent automatically; otherwise only `sync()` sends them.
    public var autoSync: Bool {
        get { value.autoSync }
        set { value.autoSync = newValue }
    }

    /// Records that must wait before they are sent automatically; one with the event `motionchange` waits for none.
    public var autoSyncThreshold: Int {
        get { value.autoSyncThreshold }
        set { value.autoSyncThreshold = newValue }
    }

    /// Whether a request carries many records, as an array.
    public var batchSync: Bool {
        get { value.batchSync }
        set { value.batchSync = newValue }
    }

    /// Records in one request at most; -1 for all, up to 1,000.
    public var maxBatchSize: Int {
        get { value.maxBatchSize }
        set { value.maxBatchSize = newValue }
    }

    /// As `LocationConfiguration.HTTP.acceptsPages`. The vendor's SDK has no such setting.
    public var acceptsPages: Bool {
        get { value.acceptsPages }
        set { value.acceptsPages = newValue }
    }
}
