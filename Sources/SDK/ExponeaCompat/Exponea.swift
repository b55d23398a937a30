internal import CountersignBloomreach
internal import CountersignCore
package import CountersignTransport
internal import Foundation

/// The tracking, fetching and authorization API of ExponeaSDK, implemented with a `BloomreachClient`.
///
/// Code written for ExponeaSDK needs only a changed import. Calls made before `configure` run after it succeeds.
/// Completion handlers are called on a thread of the SDK.
public final class Exponea: Sendable {
    /// The one instance of an app.
    public static let shared = Exponea()

    private static let currentLogger = Lock(Logger())

    /// The logger.
    public static var logger: Logger {
        get { currentLogger.withLock { $0 } }
        set { currentLogger.withLock { $0 = newValue } }
    }

    /// The maximum number of calls that wait for `configure`. Further calls before `configure` are dropped.
    private static let maximumWaiting = 1_000

    struct Settings: Sendable {
        var flushingMode = FlushingMode.immediate
        var provider: CustomerTokenProvider?
        var dataDirectory: URL?
        var transport: (any HTTPTransport)?
        var clock: any ClientClock = SystemClock()
    }

    private struct State {
        var client: BloomreachClient?
        var settings = Settings()
        var waiting: [@Sendable (BloomreachClient) -> Void] = []
    }

    private let state = Lock(State())

    init() {}

    /// Whether `configure` has succeeded.
    public var isConfigured: Bool { client != nil }

    var client: BloomreachClient? { state.withLock { $0.client } }

    /// The cookie of the customer; nil before `configure`.
    public var customerCookie: String? { client?.customerIDs["cookie"] }

    /// When events are sent. Default: at once.
    public var flushingMode: FlushingMode {
        get { settings.flushingMode }
        set { change { $0.flushingMode = newValue }?.setFlushPolicy(newValue.policy) }
    }

    /// The source of customer tokens; set it before `configure`. Nil, the default, looks for the class
    /// `ExponeaAuthProvider`. Without Objective-C, set an instance or a class name of the form `Module.Class`.
    public var authorizationProvider: CustomerTokenProvider? {
        get { settings.provider }
        set { _ = change { $0.provider = newValue } }
    }

    package func setTestDependencies(
        dataDirectory: URL?, transport: (any HTTPTransport)? = nil, clock: any ClientClock = SystemClock()
    ) {
        _ = change {
            $0.dataDirectory = dataDirectory
            $0.transport = transport
            $0.clock = clock
        }
    }

    var settings: Settings { state.withLock { $0.settings } }

    private func change(_ body: (inout Settings) -> Void) -> BloomreachClient? {
        state.withLock { state in
            body(&state.settings)
            return state.client
        }
    }

    /// Sets the client and runs the calls that wait for it. Returns false if there is a client already.
    func start(_ client: BloomreachClient) -> Bool {
        let isFirst = state.withLock { state in
            defer { state.client = state.client ?? client }
            return state.client == nil
        }
        // A call stays in the list until it has returned, so that later calls wait.
        while isFirst, let call = state.withLock({ $0.client === client ? $0.waiting.first : nil }) {
            call(client)
            state.withLock { if $0.client === client { $0.waiting.removeFirst() } }
        }
        return isFirst
    }

    /// Runs the call now or when the client is available.
    func perform(_ call: @escaping @Sendable (BloomreachClient) -> Void) {
        let (client, isFull) = state.withLock { state -> (BloomreachClient?, Bool) in
            if state.client != nil, state.waiting.isEmpty { return (state.client, false) }
            let limit = state.client == nil ? Self.maximumWaiting : .max
            guard state.waiting.count < limit else { return (nil, false) }
            state.waiting.append(call)
            return (nil, state.waiting.count == limit)
        }
        if isFull { Self.logger.log(.warning, message: "Not configured yet, further calls are dropped") }
        if let client { call(client) }
    }

    /// Calls `finish` and then permits another `configure`. Returns the client; nil without a client.
    func stop(_ finish: (BloomreachClient) -> Void) -> BloomreachClient? {
        guard let client = state.withLock({ $0.client }) else { return nil }
        finish(client)
        return state.withLock { state in
            guard state.client === client else { return nil }
            (state.client, state.waiting) = (nil, [])
            return client
        }
    }

    package func close() async {
        let client = state.withLock { state in
            defer { state = State() }
            return state.client
        }
        await client?.close()
    }
}
