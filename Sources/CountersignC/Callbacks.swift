internal import CCountersign
internal import CountersignCore

/// A pointer of the caller's, carried along and never looked at.
///
/// `@unchecked Sendable`: the header says that callbacks come on any thread, so what it points to is the caller's to guard.
struct Context: @unchecked Sendable {
    let pointer: UnsafeMutableRawPointer?
}

/// A result callback and its context.
struct ResultCallback: Sendable {
    let function: (@convention(c) @Sendable (UnsafeMutableRawPointer?, UnsafePointer<CChar>?) -> Void)?
    let context: Context

    init(_ function: countersign_result?, _ context: UnsafeMutableRawPointer?) {
        // A C function has no state of its own.
        self.function = unsafeBitCast(
            function,
            to: (@convention(c) @Sendable (UnsafeMutableRawPointer?, UnsafePointer<CChar>?) -> Void)?.self)
        self.context = Context(pointer: context)
    }

    func callAsFunction(_ json: JSONValue) {
        guard let function else { return }
        withText(json) { function(context.pointer, $0) }
    }
}

/// Calls `body` with the JSON as a text that ends with a zero byte.
func withText(_ json: JSONValue, _ body: (UnsafePointer<CChar>) -> Void) {
    String(decoding: json.bytes, as: UTF8.self).withCString(body)
}
