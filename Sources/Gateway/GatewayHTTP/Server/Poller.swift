internal import CHTTPServer
internal import GatewayModel

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// Readiness of sockets: epoll on Linux, kqueue on macOS (untested). Sockets of `add` are edge-triggered: after an
/// event, read and write until the socket would block. Sockets of `addReader` are level-triggered.
struct Poller: ~Copyable {
    struct Event {
        var id: UInt64
        var canRead: Bool
        var canWrite: Bool
        /// The peer has closed the connection or its sending half, or the connection has failed.
        var hasHungUp: Bool
    }

    static let most = 256
    private let descriptor: Int32

    #if canImport(Darwin)
        private let found = UnsafeMutablePointer<kevent>.allocate(capacity: most)

        init() throws(GatewayError) {
            descriptor = kqueue()
            guard descriptor >= 0 else { throw .noDescriptors(errno) }
        }

        func add(_ socket: Int32, id: UInt64) {
            change(socket, EVFILT_READ, EV_ADD | EV_CLEAR, id)
            change(socket, EVFILT_WRITE, EV_ADD | EV_CLEAR, id)
        }

        func addReader(_ socket: Int32, id: UInt64) { change(socket, EVFILT_READ, EV_ADD, id) }

        func remove(_ socket: Int32) { change(socket, EVFILT_READ, EV_DELETE, 0) }

        private func change(_ socket: Int32, _ filter: Int32, _ flags: Int32, _ id: UInt64) {
            var event = kevent(
                ident: UInt(socket), filter: Int16(filter), flags: UInt16(flags), fflags: 0, data: 0,
                udata: UnsafeMutableRawPointer(bitPattern: UInt(id)))
            _ = kevent(descriptor, &event, 1, nil, 0, nil)
        }

        func wait(milliseconds: Int32) -> Int {
            var time = timespec(
                tv_sec: Int(milliseconds) / 1_000, tv_nsec: Int(milliseconds) % 1_000 * 1_000_000)
            return max(0, Int(kevent(descriptor, nil, 0, found, Int32(Self.most), &time)))
        }

        func event(_ index: Int) -> Event {
            let event = found[index]
            let isRead = event.filter == Int16(EVFILT_READ)
            return Event(
                id: UInt64(UInt(bitPattern: event.udata)), canRead: isRead, canWrite: !isRead,
                hasHungUp: event.flags & UInt16(EV_EOF) != 0)
        }
    #else
        private let found = UnsafeMutablePointer<epoll_event>.allocate(capacity: most)

        init() throws(GatewayError) {
            descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
            guard descriptor >= 0 else { throw .noDescriptors(errno) }
        }

        func add(_ socket: Int32, id: UInt64) {
            add(
                socket,
                EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue, id)
        }

        func addReader(_ socket: Int32, id: UInt64) { add(socket, EPOLLIN.rawValue, id) }

        func remove(_ socket: Int32) {
            var event = epoll_event()
            epoll_ctl(descriptor, EPOLL_CTL_DEL, socket, &event)
        }

        private func add(_ socket: Int32, _ events: UInt32, _ id: UInt64) {
            var event = epoll_event()
            event.events = events
            event.data.u64 = id
            epoll_ctl(descriptor, EPOLL_CTL_ADD, socket, &event)
        }

        func wait(milliseconds: Int32) -> Int {
            max(0, Int(epoll_wait(descriptor, found, Int32(Self.most), milliseconds)))
        }

        func event(_ index: Int) -> Event {
            let event = found[index]
            let ends = EPOLLRDHUP.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue
            return Event(
                id: event.data.u64, canRead: event.events & (EPOLLIN.rawValue | ends) != 0,
                canWrite: event.events & (EPOLLOUT.rawValue | ends) != 0,
                hasHungUp: event.events & ends != 0)
        }
    #endif

    deinit {
        close(descriptor)
        found.deallocate()
    }
}
