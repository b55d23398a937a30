internal import CCountersign
internal import CountersignCore
internal import CountersignDelivery
internal import Foundation

/// An opaque pointer of the caller.
///
/// `@unchecked Sendable`: callbacks run on any thread, as the header says, so the caller synchronizes its data.
struct Context: @unchecked Sendable {
    let pointer: UnsafeMutableRawPointer?
}

struct ResultCallback: Sendable {
    private typealias Function =
        @convention(c) @Sendable (
            UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int
        ) -> Void

    private let function: Function?
    private let context: Context

    init(_ function: countersign_result?, _ context: UnsafeMutableRawPointer?) {
        // A C function has no mutable state.
        self.function = unsafeBitCast(function, to: Function?.self)
        self.context = Context(pointer: context)
    }

    /// Call on a thread of the library only. With `isKept` the receiver owns the string.
    func callAsFunction(_ json: JSONValue, isKept: Bool) {
        guard let function else { return }
        withText(json, isKept: isKept) { function(context.pointer, $0, $1) }
    }
}

/// Passes NUL-terminated JSON and its length. With `isKept`, the receiver frees the copy.
func withText(_ json: JSONValue, isKept: Bool, _ body: (UnsafePointer<CChar>?, Int) -> Void) {
    var bytes = json.bytes
    bytes.append(0)
    bytes.withUnsafeBytes { buffer in
        let text = buffer.assumingMemoryBound(to: CChar.self).baseAddress
        body(isKept ? text.flatMap { UnsafePointer(strdup($0)) } : text, buffer.count - 1)
    }
}

/// A string of the caller, valid during the call.
struct Text {
    private let bytes: UnsafeRawBufferPointer?

    init(_ pointer: UnsafePointer<CChar>?, _ length: Int) {
        guard let pointer else {
            bytes = nil
            return
        }
        // `size_t` is imported as `Int`: -1 is COUNTERSIGN_NUL_TERMINATED, and no other length is negative.
        let count = length == -1 ? strlen(pointer) : max(length, 0)
        bytes = UnsafeRawBufferPointer(start: pointer, count: count)
    }

    /// Nil if missing or not UTF-8.
    var string: String? { bytes.flatMap { String(data: Data($0), encoding: .utf8) } }

    var array: [UInt8] { bytes.map { Array($0) } ?? [] }
}

/// Runs a client's callbacks, one at a time, on a separate thread.
final class Callbacks: Sendable {
    private typealias TokenRequest =
        @convention(c) @Sendable (
            UnsafeMutableRawPointer?, UInt64, UnsafePointer<CChar>?, Int
        ) -> Void

    private let queue = DispatchQueue(label: "countersign.callbacks")
    private let event: ResultCallback?
    private let requestToken: TokenRequest?
    private let context: Context
    private let isClosed = Lock(false)
    /// Whether the receiver of a string owns and frees the string.
    let keepsTexts: Bool
    /// Nil without a provider callback.
    let provider: CallbackProvider?

    init(
        event: countersign_event?, provider: countersign_provider?, context: UnsafeMutableRawPointer?,
        keepsTexts: Bool
    ) {
        self.event = event.map { ResultCallback($0, context) }
        requestToken = unsafeBitCast(provider, to: TokenRequest?.self)
        self.context = Context(pointer: context)
        self.keepsTexts = keepsTexts
        self.provider = provider == nil ? nil : CallbackProvider()
    }

    /// Whether the client has an event callback, which also receives the log.
    var hasListener: Bool { event != nil }

    func post(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }

    /// Enqueues a call of the event callback. Drops the event if the client is closed before the call.
    func send(_ json: JSONValue) {
        guard let event else { return }
        queue.async { [self] in if !isClosed.withLock({ $0 }) { event(json, isKept: keepsTexts) } }
    }

    /// Suspends until an answer, the time limit, the close of the client or the cancellation of the task.
    func token(_ request: JSONValue, within seconds: TimeInterval) async throws(TokenProviderTimeout)
        -> String?
    {
        try await provider?.token(within: seconds) { [self] number in
            queue.async { [self] in
                guard let requestToken, !isClosed.withLock({ $0 }) else { return }
                withText(request, isKept: keepsTexts) {
                    requestToken(context.pointer, number, $0, $1)
                }
            }
        }
    }

    func drain() { queue.sync {} }

    /// Calls `last` after all enqueued callbacks, and no callback of the client afterwards.
    func finish(_ last: @escaping @Sendable () -> Void) {
        queue.async { [self] in
            isClosed.withLock { $0 = true }
            last()
        }
    }
}
