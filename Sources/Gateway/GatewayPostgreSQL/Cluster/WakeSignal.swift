internal import CPostgreSQL
internal import Foundation

/// Wakes a thread that polls a socket (self-pipe).
final class WakeSignal: Sendable {
    private let reader: Int32
    private let writer: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        // If creating the pipe fails, threads wait for the full time.
        _ = pipe(&ends)
        (reader, writer) = (ends[0], ends[1])
        for end in ends where end >= 0 {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
    }

    deinit {
        for end in [reader, writer] where end >= 0 { close(end) }
    }

    func signal() {
        _ = write(writer, [0], 1)
    }

    /// Returns after ``signal()``, when the socket is readable, or after the time limit.
    func wait(besides socket: Int32?, milliseconds: Int32) {
        // `poll` ignores negative descriptors.
        var descriptors = [
            pollfd(fd: reader, events: Int16(POLLIN), revents: 0),
            pollfd(fd: socket ?? -1, events: Int16(POLLIN), revents: 0),
        ]
        _ = poll(&descriptors, 2, milliseconds)
        var taken = [UInt8](repeating: 0, count: 64)
        _ = read(reader, &taken, taken.count)
    }
}
