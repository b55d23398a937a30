public import Foundation

/// The configuration of a `CountersignClient`.
public struct CountersignConfiguration: Sendable {
    /// The server's base URL, `https` in production. Events go to `/v1/batch` below it.
    public var endpoint: URL
    /// The app's write key, visible ASCII. It identifies the app and is not a secret.
    public var writeKey: String
    /// Distinguishes clients of one app, each with its own queue. Letters, digits, `-`, `_` and, not first, `.`.
    public var instanceName: String = "default"
    /// The parent of the directories of all instances. Nil for a directory of this app and write key, below
    /// `Countersign` in the user's Application Support directory (on Linux `$XDG_DATA_HOME` or `~/.local/share`). An
    /// app group's container is invalid, because iOS ends a process that is suspended while it holds a lock there.
    public var dataDirectory: URL?
    /// The limits of the queue.
    public var limits = QueueLimits()
    /// When the SDK sends without a call of `flush()`.
    public var flushPolicy = FlushPolicy.automatic
    /// Maximum number of events in a request. Default: 100.
    public var batchEvents = 100
    /// Maximum bytes of events in a request. Default: 400,000.
    public var batchBytes = 400_000
    /// Further header fields of each request, for example for a proxy. The client's `init` throws
    /// `invalidConfiguration` for a field that the SDK sets.
    public var headers: [String: String] = [:]
    /// Time limit for a request, in seconds. Default: 30.
    public var requestTimeout: TimeInterval = 30
    /// The delays after failures of the server or the network. Default: from 2 s up to 3 minutes, for any number of
    /// failures.
    public var networkRetry = RetryPolicy.network
    /// The delays after rejected tokens. Default: from 2 s up to 5 minutes, for 50 failures in a row.
    public var authenticationRetry = RetryPolicy.authentication
    /// The facts about the app and the device that each event carries.
    public var context = EventContext()
    /// Called when a token is missing, has expired or was rejected. Nil if the app sets tokens itself.
    public var tokenProvider: TokenProvider?
    /// Time limit for the token provider, in seconds. Default: 30.
    public var tokenProviderTimeout: TimeInterval = 30
    /// Stores tokens between runs; nil for the Keychain on Apple platforms and a file elsewhere.
    public var tokenStore: (any TokenStore)?
    /// Seconds in the background after which a new session begins. Default: 10.
    public var sessionTimeout: TimeInterval = 10
    /// The lowest level that is logged. Setting it replaces `log` by the system's log on Apple platforms and standard
    /// error elsewhere; nil disables logging. Default: warnings.
    public var logLevel: CountersignLog.Level? = .warning {
        didSet { log = logLevel.map { .standard($0) } }
    }
    /// Receives the log lines; nil for no logging. Default: the log that `logLevel` describes.
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
        if let problem = endpoint.endpointProblem { try require(false, "endpoint \(problem)") }
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
        settings.headers = headers
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

    func makeTokenStore() -> any TokenStore { folder.makeTokenStore(tokenStore, log: log) }

    /// The first access copies an opt-out that the user has made under another write key of the app.
    package var instanceDirectory: URL { folder.directory }
}
