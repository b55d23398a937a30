internal import CountersignCore
internal import GatewayModel

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

struct RequestTicket: Equatable {
    let connection: Int
    let request: UInt64
}

/// Wakes a loop from any other thread and lists the requests whose work has ended. Signals between two passes
/// are combined, so a commit that completes many requests costs one system call.
final class Inbox: Sendable {
    let reading: Int32
    private let writing: Int32
    private let state = Lock(State())

    private struct State {
        var isSignalled = false
        var ended: [RequestTicket] = []
    }

    init() throws(GatewayError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw .noDescriptors(errno) }
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

    func signal(_ ended: RequestTicket? = nil) {
        let isFirst = state.withLock { state in
            if let ended { state.ended.append(ended) }
            defer { state.isSignalled = true }
            return !state.isSignalled
        }
        var byte: UInt8 = 1
        if isFirst { _ = write(writing, &byte, 1) }
    }

    /// Replaces `ended` by the finished requests. Called when `reading` is readable. A signal after this call ends
    /// the loop's next wait.
    func take(_ ended: inout [RequestTicket]) {
        // Read before locking: a byte that is written after the lock is released must remain in the pipe.
        var bytes: UInt64 = 0
        while read(reading, &bytes, 8) == 8 {}
        ended.removeAll(keepingCapacity: true)
        state.withLock { state in
            swap(&state.ended, &ended)
            state.isSignalled = false
        }
    }
}

extension GatewayError {
    static func noDescriptors(_ error: Int32) -> GatewayError {
        GatewayError(
            .cannotBind, "no file descriptors are left: \(String(cString: strerror(error))); raise the limit")
    }
}
