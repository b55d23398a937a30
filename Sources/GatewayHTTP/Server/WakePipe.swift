internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// Ends the wait of the server's thread from any other thread.
///
/// Signals between two passes become one byte: a commit that resumes many connections costs one system call.
final class WakePipe: Sendable {
    /// The end that the server's thread waits on.
    let reading: Int32
    private let writing: Int32
    private let isSignalled = Lock(false)

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

    func signal() {
        let isFirst = isSignalled.withLock { isSignalled in
            defer { isSignalled = true }
            return !isSignalled
        }
        if isFirst { _ = write(writing, [1], 1) }
    }

    /// Called by the server's thread after its wait and before it looks at what it was woken for: a signal from then on
    /// ends the next wait.
    func rearm() {
        isSignalled.withLock { $0 = false }
    }
}
