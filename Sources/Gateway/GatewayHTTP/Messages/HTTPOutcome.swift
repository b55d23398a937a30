internal import CountersignCore

package enum HTTPOutcome {
    case answer(HTTPResponse)
    /// A deferred response. `start` begins the work, which must call the given closure exactly once, from any
    /// thread, when it has ended. `poll` returns nil until then, and the response afterwards.
    case later(start: (@escaping @Sendable () -> Void) -> Void, poll: () -> HTTPResponse?)
}

extension HTTPOutcome {
    /// A deferred response. `begin` must pass its result to the closure exactly once, from any thread.
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
