internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// A request that waits no longer. What it refers to is touched by its loop only.
struct EndedRequest: @unchecked Sendable {
    let exchange: Exchange
}

/// Ends the wait of a loop from any other thread, and says which requests wait no longer.
///
/// Signals between two passes become one byte: a commit that resumes many connections costs one system call.
final class WakePipe: Sendable {
    /// The end that the loop waits on.
    let reading: Int32
    private let writing: Int32
    private let state = Lock(State())

    private struct State {
        var isSignalled = false
        var ended: [EndedRequest] = []
    }

    init() throws(GatewayError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw GatewayError(
                .cannotBind,
                "no file descriptors are left: \(String(cString: strerror(errno))); raise the limit")
        }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        reading = ends[0]
        writing = ends[1]
    }

    deinit {
        close(reading)
        close(writing)
    }

    func signal(_ ended: EndedRequest? = nil) {
        let isFirst = state.withLock { state in
            if let ended { state.ended.append(ended) }
            defer { state.isSignalled = true }
            return !state.isSignalled
        }
        if isFirst { _ = write(writing, [1], 1) }
    }

    /// Called by the loop after its wait and before it looks at what it was woken for: a signal from then on
    /// ends the next wait. Returns the requests that have ended since.
    func rearm() -> [EndedRequest] {
        state.withLock { state in
            defer { state = State() }
            return state.ended
        }
    }
}
