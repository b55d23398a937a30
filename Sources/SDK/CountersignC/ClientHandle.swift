internal import CCountersign
internal import CountersignCore
internal import CountersignDelivery
internal import CountersignTransport

/// The methods of a client in one mode.
protocol Mode: Sendable {
    typealias Completion = @Sendable (Result<JSONValue, CountersignError>) -> Void

    /// Begins a call that must keep the order of the calls. Returns false for other methods.
    func begin(
        _ method: String, _ arguments: Arguments, _ completion: @escaping Completion
    ) throws(CountersignError) -> Bool

    /// Nil for an unknown method.
    func perform(_ method: String, _ arguments: Arguments) async throws(CountersignError) -> JSONValue?

    /// Writes events that are only in memory to disk, and stops all work.
    func close() async
}

/// A client opened through the C API.
final class ClientHandle: Sendable {
    private struct State {
        /// The number of calls without a result yet.
        var pending = 0
        var isClosed = false
        var whenIdle: (@Sendable () -> Void)?
    }

    /// The permitted arguments by method. Methods that are missing here have no arguments or check them themselves.
    private static let parameters: [String: Set<String>] = [
        "identify": ["userId", "token", "traits"], "changeUser": ["userId", "token"],
        "track": ["event", "kind", "properties"], "setToken": ["token"],
        "remove": ["uuid"], "accessToken": ["replacing"], "trackPushToken": ["token"],
        "identifyCustomer": ["customerIds", "properties", "timestamp"],
        "trackCustomer": ["properties", "timestamp"], "fetchAttributes": ["attributes"],
        "trackEvent": ["eventType", "properties", "timestamp"], "trackCampaignClick": ["url", "timestamp"],
        "anonymize": ["projectToken", "authorization", "authorizationToken", "baseUrl", "projectMapping"],
        "markAppInboxAsRead": ["messageId"], "sendSelfCheck": ["pushToken"],
    ]

    private let mode: any Mode
    private let callbacks: Callbacks
    private let state = Lock(State())

    init(_ mode: any Mode, _ callbacks: Callbacks) {
        self.mode = mode
        self.callbacks = callbacks
    }

    func answer(_ number: UInt64, _ token: String?) { callbacks.provider?.answer(number, token) }

    func call(_ method: String, _ arguments: Text?, _ callback: ResultCallback) -> countersign_status {
        // Reject a call whose client another thread has closed meanwhile. The close does not wait for such a call.
        let isOpen = state.withLock { state in
            if !state.isClosed { state.pending += 1 }
            return !state.isClosed
        }
        guard isOpen else { return COUNTERSIGN_CLOSED }
        let finish: Mode.Completion = { [self] result in
            callbacks.post { [self] in
                switch result {
                case .success(let value): callback(["value": value], isKept: callbacks.keepsTexts)
                case .failure(let error):
                    callback(["error": ErrorJSON.members(error)], isKept: callbacks.keepsTexts)
                }
                let whenIdle = state.withLock { state in
                    state.pending -= 1
                    return state.pending == 0 ? state.whenIdle.take() : nil
                }
                whenIdle?()
            }
        }
        do throws(CountersignError) {
            guard let members = arguments.map({ JSONDocument.object($0.array) }) ?? [:] else {
                throw CountersignError(.invalidArgument, "the arguments must be a JSON object")
            }
            let arguments = Arguments(members)
            if let names = Self.parameters[method] { try arguments.allow(names) }
            // Recording calls keep their order. Queries suspend.
            if try mode.begin(method, arguments, finish) { return COUNTERSIGN_OK }
            Task { [mode] in
                do throws(CountersignError) {
                    guard let value = try await mode.perform(method, arguments) else {
                        throw CountersignError(.invalidArgument, "there is no method \(method)")
                    }
                    finish(.success(value))
                } catch {
                    finish(.failure(error))
                }
            }
        } catch {
            finish(.failure(error))
        }
        return COUNTERSIGN_OK
    }

    func close(_ done: ResultCallback) {
        state.withLock { $0.isClosed = true }
        Task { [self] in
            callbacks.provider?.end()
            await mode.close()
            await withCheckedContinuation { continuation in
                let isIdle = state.withLock { state in
                    if state.pending > 0 { state.whenIdle = { continuation.resume() } }
                    return state.pending == 0
                }
                if isIdle { continuation.resume() }
            }
            callbacks.finish { [callbacks] in done(["value": .null], isKept: callbacks.keepsTexts) }
        }
    }
}
