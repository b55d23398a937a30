internal import CCountersign
internal import CountersignCore
internal import CountersignDelivery
internal import Foundation

/// A pointer of the caller's, carried along and never looked at.
///
/// `@unchecked Sendable`: the header says that callbacks come on any thread, so what it points to is the caller's to guard.
struct Context: @unchecked Sendable {
    let pointer: UnsafeMutableRawPointer?
}

/// A callback that takes JSON, and its context.
struct ResultCallback: Sendable {
    private typealias Function =
        @convention(c) @Sendable (
            UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int
        ) -> Void

    private let function: Function?
    private let context: Context

    init(_ function: countersign_result?, _ context: UnsafeMutableRawPointer?) {
        // A C function has no state of its own.
        self.function = unsafeBitCast(function, to: Function?.self)
        self.context = Context(pointer: context)
    }

    /// On a thread of the library only. `isKept`: the text is the receiver's.
    func callAsFunction(_ json: JSONValue, isKept: Bool) {
        guard let function else { return }
        withText(json, isKept: isKept) { function(context.pointer, $0, $1) }
    }
}

/// Calls `body` with the JSON, NUL-terminated, and its length. When `isKept`, it is a copy that the receiver frees.
func withText(_ json: JSONValue, isKept: Bool, _ body: (UnsafePointer<CChar>?, Int) -> Void) {
    var bytes = json.bytes
    bytes.append(0)
    bytes.withUnsafeBytes { buffer in
        let text = buffer.assumingMemoryBound(to: CChar.self).baseAddress
        body(isKept ? text.flatMap { UnsafePointer(strdup($0)) } : text, buffer.count - 1)
    }
}

/// A text of the caller's, as long as the call lasts.
struct Text {
    private let bytes: UnsafeRawBufferPointer?

    init(_ pointer: UnsafePointer<CChar>?, _ length: Int) {
        guard let pointer else {
            bytes = nil
            return
        }
        // `size_t` is an `Int` here: -1 is COUNTERSIGN_NUL_TERMINATED, and no text has another length below 0.
        let count = length == -1 ? strlen(pointer) : max(length, 0)
        bytes = UnsafeRawBufferPointer(start: pointer, count: count)
    }

    /// Nil if there is none, or if it is not UTF-8.
    var string: String? { bytes.flatMap { String(data: Data($0), encoding: .utf8) } }

    var array: [UInt8] { bytes.map { Array($0) } ?? [] }
}

/// The way out of the library: one callback at a time, on a thread of its own.
final class Callbacks: Sendable {
    private typealias Ask =
        @convention(c) @Sendable (
            UnsafeMutableRawPointer?, UInt64, UnsafePointer<CChar>?, Int
        ) -> Void

    private let queue = DispatchQueue(label: "countersign.callbacks")
    private let event: ResultCallback?
    private let ask: Ask?
    private let context: Context
    private let isClosed = Lock(false)
    /// Whether texts are the receiver's, to free.
    let keepsTexts: Bool
    /// Asks for tokens; nil if nobody is there to ask.
    let provider: CallbackProvider?

    init(
        event: countersign_event?, provider: countersign_provider?, context: UnsafeMutableRawPointer?,
        keepsTexts: Bool
    ) {
        self.event = event.map { ResultCallback($0, context) }
        ask = unsafeBitCast(provider, to: Ask?.self)
        self.context = Context(pointer: context)
        self.keepsTexts = keepsTexts
        self.provider = provider == nil ? nil : CallbackProvider()
    }

    /// True if somebody listens to events, and the log is not for the standard error stream.
    var hasListener: Bool { event != nil }

    func post(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }

    /// Tells of an event, unless the client is closed by the time it is its turn.
    func tell(_ json: JSONValue) {
        guard let event else { return }
        queue.async { [self] in if !isClosed.withLock({ $0 }) { event(json, isKept: keepsTexts) } }
    }

    /// Asks for a token and suspends until the answer comes or the task is cancelled. Throws when there is none in time.
    func token(_ request: JSONValue, within seconds: TimeInterval) async throws(TokenProviderTimeout)
        -> String?
    {
        try await provider?.token(within: seconds) { [self] number in
            queue.async { [self] in
                guard let ask, !isClosed.withLock({ $0 }) else { return }
                withText(request, isKept: keepsTexts) { ask(context.pointer, number, $0, $1) }
            }
        }
    }

    /// Waits until everything that is on its way was told.
    func drain() { queue.sync {} }

    /// Calls `last` after everything that is on its way, and nothing of the client's after that.
    func finish(_ last: @escaping @Sendable () -> Void) {
        queue.async { [self] in
            isClosed.withLock { $0 = true }
            last()
        }
    }
}
