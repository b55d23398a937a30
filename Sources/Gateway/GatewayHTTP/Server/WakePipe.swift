internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// A request whose work has ended. The exchange is used by its loop's thread only.
struct EndedRequest: @unchecked Sendable {
    let exchange: Exchange
}

/// Wakes a loop from any other thread and lists the requests whose work has ended.
///
/// Signals between two passes are combined into one byte, so a commit that completes many requests costs one
/// system call.
final class WakePipe: Sendable {
    /// The descriptor that the loop waits on.
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

    /// Called by the loop after its wait and before it handles the wake-up. Later signals end the next wait.
    /// Returns the requests whose work has ended.
    func rearm() -> [EndedRequest] {
        state.withLock { state in
            defer { state = State() }
            return state.ended
        }
    }
}
