/// What a handler makes of a request.
package enum HTTPOutcome {
    /// Answer now.
    case answer(HTTPResponse)
    /// Answer when there is something to say. `start` begins the work, which calls the given closure, once and from any
    /// thread, when it has ended; `poll` makes the answer then, once, and is nil before.
    case later(start: (@escaping @Sendable () -> Void) -> Void, poll: () -> HTTPResponse?)
}
