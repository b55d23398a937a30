public import Foundation

/// How a `CountersignClient` works.
public struct CountersignConfiguration: Sendable {
    /// The server's base URL, `https` in production. Events go to `/v1/batch` below it.
    public var endpoint: URL
    /// The app's key, visible ASCII. It names the app and proves nothing.
    public var writeKey: String
    /// Tells clients of one app apart: each has its own queue. Letters, digits, `-`, `_` and `.`.
    public var instanceName: String = "default"
    /// The directory that holds a directory for each instance; nil for one of this app and write key, below `Countersign` in the
    /// user's Application Support directory (on Linux `$XDG_DATA_HOME` or `~/.local/share`). Not in an app group's container on
    /// iOS: the system ends a process that is suspended while it has a lock there.
    public var dataDirectory: URL?
    /// How much the queue keeps.
    public var limits = QueueLimits()
    /// When the SDK sends on its own.
    public var flushPolicy = FlushPolicy.automatic
    /// Events in one request at most. Default: 100.
    public var batchEvents = 100
    /// Bytes of events in one request at most. Default: 400,000.
    public var batchBytes = 400_000
    /// Seconds that a request may take. Default: 30.
    public var requestTimeout: TimeInterval = 30
    /// The waits after failures of the server or the network.
    public var networkRetry = RetryPolicy.network
    /// The waits after refused tokens.
    public var authenticationRetry = RetryPolicy.authentication
    /// Asked for a token when there is none, when it expires and when the server refuses it; nil if the app hands tokens
    /// over on its own.
    public var tokenProvider: TokenProvider?
    /// Seconds that the token provider may take. Default: 30.
    public var tokenProviderTimeout: TimeInterval = 30
    /// Where tokens are kept between two runs; nil for the Keychain on Apple platforms and a file elsewhere.
    public var tokenStore: (any TokenStore)?
    /// Seconds in the background after which a new session begins. Default: 10.
    public var sessionTimeout: TimeInterval = 10
    /// How much is written to the standard log (`CountersignLog.standard(_:)`), which setting this puts into `log`; nil for
    /// nothing. Default: warnings.
    public var logLevel: CountersignLog.Level? = .warning {
        didSet { log = logLevel.map { .standard($0) } }
    }
    /// Where log lines go; nil for nowhere. Default: warnings, to the standard log.
    public var log: CountersignLog? = .standard(.warning)

    /// Makes a configuration with the defaults.
    ///
    /// - Parameters:
    ///   - endpoint: The server's base URL.
    ///   - writeKey: The app's key.
    public init(endpoint: URL, writeKey: String) {
        self.endpoint = endpoint
        self.writeKey = writeKey
    }
}

extension CountersignConfiguration {
    func validate() throws(CountersignError) {
        func require(_ condition: Bool, _ detail: String) throws(CountersignError) {
            guard condition else { throw CountersignError(.invalidConfiguration, detail) }
        }
        try require(
            ["http", "https"].contains(endpoint.scheme?.lowercased()) && endpoint.host?.isEmpty == false,
            "endpoint must be an http or https URL with a host")
        try require(
            !writeKey.isEmpty && writeKey.utf8.allSatisfy { (0x21...0x7E).contains($0) },
            "writeKey must be visible ASCII without spaces")
        try folder.validate()
        try require(tokenProviderTimeout > 0, "tokenProviderTimeout must be above 0")
    }

    var deliverySettings: DeliverySettings {
        var settings = DeliverySettings(directory: instanceDirectory)
        settings.limits = limits
        settings.flushPolicy = flushPolicy
        settings.batchEvents = batchEvents
        settings.batchBytes = batchBytes
        settings.requestTimeout = requestTimeout
        settings.networkRetry = networkRetry
        settings.authenticationRetry = authenticationRetry
        settings.patience = min(5, tokenProviderTimeout / 2)
        settings.sessionTimeout = sessionTimeout
        settings.log = log
        return settings
    }

    private var folder: InstanceFolder {
        InstanceFolder(name: instanceName, dataDirectory: dataDirectory, key: writeKey)
    }

    /// The app's token store, or the platform's. To be made before anything is put into the directory.
    func makeTokenStore() -> any TokenStore { folder.makeTokenStore(tokenStore, log: log) }

    /// Where the queue of this instance is. What an earlier version had elsewhere is there now.
    package var instanceDirectory: URL { folder.directory }
}
