internal import CountersignCore

/// Handles requests whose bodies may take long to unpack or to read, one after another on its own queue: nothing
/// that a client sends may hold the server's thread, which serves all others too.
final class LargeRequests: Sendable {
    /// Bytes of a body that the server's thread still reads itself. The slowest body of this size takes it a few
    /// milliseconds.
    static let smallBytes = 64 * 1024

    private let queue: BoundedQueue

    init(places: Int = 128) {
        queue = BoundedQueue(label: "large requests", places: places)
    }

    // The request and what is made of it are touched by the queue until the lock has handed them over.
    private struct Work: @unchecked Sendable {
        let request: HTTPRequest
        /// The body counts for as long as somebody works on it, also when the client has gone.
        let held: HeldMemory
        var poll: (() -> HTTPResponse?)?
    }

    /// What becomes of a request. Returns an outcome that is not there yet, or 503 when too many wait.
    func outcome(
        of request: HTTPRequest, holding held: HeldMemory,
        _ handle: @escaping @Sendable (HTTPRequest) -> HTTPOutcome
    ) -> HTTPOutcome {
        guard queue.take() else {
            return .answer(
                .failure(
                    503, code: "overloaded",
                    reason: "too many large requests are waiting; nothing was stored, send it again",
                    requestID: request.id
                ).with("Retry-After", "1"))
        }
        let work = Work(request: request.detached(), held: held)
        request.body = []
        let ready = Lock<Work?>(nil)
        return .later(
            start: { [queue] resume in
                queue.async {
                    var done = work
                    switch handle(work.request) {
                    case .answer(let response):
                        done.poll = { response }
                        ready.withLock { $0 = done }
                        resume()
                    case .later(let start, let poll):
                        done.poll = poll
                        ready.withLock { $0 = done }
                        start(resume)
                    }
                }
            },
            poll: {
                guard let done = ready.withLock({ $0 }), let response = done.poll?() else { return nil }
                request.context = done.request.context
                request.body = done.request.body
                return response
            })
    }
}
