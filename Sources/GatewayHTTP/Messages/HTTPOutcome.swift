internal import CountersignCore

/// What a handler makes of a request.
package enum HTTPOutcome {
    /// Answer now.
    case answer(HTTPResponse)
    /// Answer when there is something to say. `start` begins the work, which calls the given closure, once and from any
    /// thread, when it has ended; `poll` makes the answer then, once, and is nil before.
    case later(start: (@escaping @Sendable () -> Void) -> Void, poll: () -> HTTPResponse?)
}

extension HTTPOutcome {
    /// Answers when `begin` has handed over its result, once, from any thread.
    package static func waiting<Value: Sendable>(
        _ begin: @escaping (@escaping @Sendable (Value) -> Void) -> Void,
        finish: @escaping (Value) -> HTTPResponse
    ) -> HTTPOutcome {
        let slot = Lock<Value?>(nil)
        return .later(
            start: { resume in
                begin { result in
                    slot.withLock { $0 = result }
                    resume()
                }
            },
            poll: { slot.withLock { $0 }.map(finish) })
    }
}
