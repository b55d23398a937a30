internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

/// Events on their way into the queue file: appended with a plain write, which outlives the process, and made durable by
/// one `fdatasync` that holds up no write (see docs/adr/0014).
///
/// Each client writes its own logs, so there is no lock, and the queue file remembers how far each log was taken over:
/// an event gets from here into the queue exactly once, whoever brings it there. Three files take turns, since what a
/// transaction took over is thrown away only when the next transaction has made that one durable.
///
/// Not thread-safe but for `synchronize()` and `reclaim(through:)`: `Recorder` holds a lock.
final class IncomingLog: @unchecked Sendable {
    /// One file; open as long as somebody works on it.
    private final class File: Sendable {
        let path: String
        let descriptor: Int32

        init(path: String) throws {
            self.path = path
            descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw IncomingLog.error("open", path) }
        }

        deinit { close(descriptor) }
    }

    private struct Slot {
        let file: File
        var size: Int64 = 0
        /// The number of the last event in it.
        var last: Int64 = 0
        var mustSync = false
    }

    private struct State {
        var slots: [Slot] = []
        /// The slot that is written to.
        var active = 0
        /// True when a call for durability has failed: the system has forgotten then what it could not write, and the next call
        /// would succeed without it.
        var hasFailed = false
    }

    /// How it is called in the queue file.
    let id: String
    private let directory: URL
    private let makeDurable: @Sendable (_ descriptor: Int32) -> Bool
    private let empty: @Sendable (_ descriptor: Int32) -> Bool
    /// `synchronize()` and `reclaim(through:)` come from other threads.
    private let state = Lock(State())
    /// Held while files are emptied, which takes as long as the disk is busy with them. Taken before `state`.
    private let emptying = NSLock()
    private var lastSequence: Int64 = 0

    init(
        directory: URL, holder: LeaseHolder,
        makeDurable: @escaping @Sendable (_ descriptor: Int32) -> Bool = IncomingLog.makeDurable,
        empty: @escaping @Sendable (_ descriptor: Int32) -> Bool = IncomingLog.empty
    ) {
        self.directory = directory
        self.makeDurable = makeDurable
        self.empty = empty
        id = holder.id
    }

    /// The number of the last event that was appended.
    var last: Int64 { lastSequence }

    /// Adds events. When it returns they outlive the process, but not a power failure. Returns the number of the last
    /// one; they are numbered without gaps. Throws when nothing was added.
    func append(_ rows: [RenderedEvent]) throws -> Int64 {
        try write(zip((lastSequence + 1)..., rows).map { ($0, $1) })
        lastSequence += Int64(rows.count)
        return lastSequence
    }

    /// Adds events again under the numbers that they have had: the queue file may know these already. Throws when
    /// nothing was added.
    func appendAgain(_ events: [(sequence: Int64, event: RenderedEvent)]) throws {
        try write(events)
    }

    private func write(_ events: [(sequence: Int64, event: RenderedEvent)]) throws {
        guard let last = events.last?.sequence else { return }
        try openFiles()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(events.reduce(0) { $0 + $1.event.body.count + 160 })
        for (sequence, event) in events { Frame.write(event, sequence: sequence, to: &bytes) }
        let slot = state.withLock { $0.slots[$0.active] }
        do {
            try bytes.withUnsafeBytes { buffer in
                var rest = buffer
                while !rest.isEmpty {
                    let count = DurableFile.write(slot.file.descriptor, rest)
                    if count < 0, errno == EINTR { continue }
                    guard count > 0 else { throw Self.error("write", slot.file.path) }
                    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
                }
            }
        } catch {
            // Half an event at the end would hide those that come after it.
            if ftruncate(slot.file.descriptor, off_t(slot.size)) != 0 { state.withLock { $0.slots = [] } }
            throw error
        }
        state.withLock { state in
            state.slots[state.active].size += Int64(bytes.count)
            state.slots[state.active].last = max(last, state.slots[state.active].last)
            state.slots[state.active].mustSync = true
        }
    }

    /// Makes durable what was appended before the call. Throws when the disk failed. What it has then is unknown, and
    /// no repetition would tell: it throws until `restart()`.
    func synchronize() throws {
        let (files, hasFailed) = state.withLock { state in
            let files = state.slots.filter(\.mustSync).map(\.file)
            for index in state.slots.indices { state.slots[index].mustSync = false }
            return (files, state.hasFailed)
        }
        guard !hasFailed else { throw CountersignError(.notStored, "the disk failed before") }
        for file in files {
            if makeDurable(file.descriptor) { continue }
            let error = Self.error("fdatasync", file.path)
            state.withLock { $0.hasFailed = true }
            throw error
        }
    }

    static func makeDurable(_ descriptor: Int32) -> Bool {
        #if canImport(Darwin)
            fcntl(descriptor, F_BARRIERFSYNC) == 0 || fsync(descriptor) == 0
        #else
            fdatasync(descriptor) == 0
        #endif
    }

    static func empty(_ descriptor: Int32) -> Bool { ftruncate(descriptor, 0) == 0 }

    /// Lets what comes now go into an empty file, if there is one, so that the others can be emptied.
    func rotate() {
        state.withLock { state in
            guard !state.slots.isEmpty, state.slots[state.active].size > 0,
                let empty = state.slots.indices.first(where: { state.slots[$0].size == 0 })
            else { return }
            state.active = empty
        }
    }

    /// Empties the files that hold nothing after `sequence`, but for the one that is written to. Holds up no write.
    func reclaim(through sequence: Int64) {
        emptying.withLock {
            let spent = state.withLock { state in
                state.slots.indices.filter {
                    $0 != state.active && state.slots[$0].size > 0 && state.slots[$0].last <= sequence
                }.map { (index: $0, file: state.slots[$0].file) }
            }
            for (index, file) in spent where empty(file.descriptor) {
                state.withLock { state in
                    // A write that failed may have given all of them up.
                    guard !state.slots.isEmpty else { return }
                    state.slots[index].size = 0
                    state.slots[index].mustSync = true
                }
            }
        }
    }

    /// Starts over with empty files.
    func restart() {
        emptying.withLock {
            state.withLock { state in
                for slot in state.slots where slot.size > 0 { _ = empty(slot.file.descriptor) }
                state = State()
            }
        }
    }

    /// Removes the files. They must hold nothing that the queue file does not have.
    func remove() {
        emptying.withLock {
            state.withLock { state in
                for slot in state.slots { unlink(slot.file.path) }
                state = State()
            }
        }
    }

    /// Opens the files, also when somebody has moved or deleted them.
    private func openFiles() throws {
        let areThere = state.withLock { state in
            !state.slots.isEmpty && Self.isInPlace(state.slots[state.active].file)
        }
        if areThere { return }
        // Not while one of them is being emptied: it may be opened again here, and written to.
        emptying.lock()
        defer { emptying.unlock() }
        try QueueDirectory.make(directory)
        let made = try (0..<3).map { number in
            let file = try File(
                path: directory.appendingPathComponent(
                    "\(Self.prefix)\(id)-\(getpid())-\(number)\(Self.suffix)"
                ).path)
            return Slot(file: file, size: Int64(lseek(file.descriptor, 0, SEEK_END)), last: lastSequence)
        }
        // The names have to outlive a power failure too.
        _ = synchronizeFile(directory.path)
        // Where a write broke off, nothing that comes after it could be read.
        let active = made.firstIndex { $0.size == 0 } ?? 0
        state.withLock { $0 = State(slots: made, active: active, hasFailed: $0.hasFailed) }
    }

    private static func isInPlace(_ file: File) -> Bool {
        var named = stat()
        var opened = stat()
        guard stat(file.path, &named) == 0, fstat(file.descriptor, &opened) == 0 else { return false }
        return named.st_ino == opened.st_ino && named.st_dev == opened.st_dev
    }

    private static func error(_ call: String, _ path: String) -> CountersignError {
        CountersignError(.notStored, "\(call): \(String(cString: strerror(errno))) (\(path))")
    }
}

// MARK: The logs of others

extension IncomingLog {
    static let prefix = "incoming-"
    static let suffix = ".log"

    /// The files of one log.
    struct Found {
        /// Also that of the `LeaseHolder` that writes it.
        let id: String
        /// Whose process it is.
        let processID: Int32
        var paths: [String] = []
        /// When it was written to last, in seconds since 1970.
        var modified: TimeInterval = 0

        /// What it holds after `sequence`, in order, and how many events between others cannot be read. A truncated file ends
        /// where it stops making sense.
        func events(
            after sequence: Int64
        ) -> (events: [(sequence: Int64, event: RenderedEvent)], unreadable: Int) {
            let contents = paths.map { Frame.read(contentsOf: $0, after: sequence) }
            let events = contents.flatMap(\.events).filter { $0.sequence > sequence }
            // The same number is the same event.
            let sorted = Dictionary(events.map { ($0.sequence, $0.event) }) { first, _ in first }.sorted {
                $0.key < $1.key
            }
            return (sorted.map { ($0.key, $0.value) }, contents.reduce(0) { $0 + $1.unreadable })
        }
    }

    /// The logs in a directory.
    static func all(in directory: URL) -> [Found] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
        var found: [String: Found] = [:]
        for name in names where name.hasPrefix(prefix) && name.hasSuffix(suffix) {
            // prefix, UUID, process id, number, suffix
            let parts = name.dropFirst(prefix.count).dropLast(suffix.count).split(separator: "-")
            guard parts.count > 2, let process = Int32(parts[parts.count - 2]) else { continue }
            let id = parts.dropLast(2).joined(separator: "-")
            let path = directory.appendingPathComponent(name).path
            var status = stat()
            guard stat(path, &status) == 0 else { continue }
            #if canImport(Darwin)
                let modified = TimeInterval(status.st_mtimespec.tv_sec)
            #else
                let modified = TimeInterval(status.st_mtim.tv_sec)
            #endif
            var log = found[id] ?? Found(id: id, processID: process)
            log.paths.append(path)
            log.modified = max(log.modified, modified)
            found[id] = log
        }
        return Array(found.values)
    }

    /// How an event stands in a file: the length of the rest, its CRC-32, then number, ids and body. Integers are
    /// little-endian; a text or body has its length before it.
    private enum Frame {
        private static let noUser = UInt32.max

        static func write(_ row: RenderedEvent, sequence: Int64, to bytes: inout [UInt8]) {
            let start = bytes.count
            integer(UInt32(0), to: &bytes)
            integer(UInt32(0), to: &bytes)
            integer(sequence, to: &bytes)
            text(row.messageID, to: &bytes)
            if let user = row.userID { text(user, to: &bytes) } else { integer(noUser, to: &bytes) }
            text(row.sessionID, to: &bytes)
            integer(UInt32(row.body.count), to: &bytes)
            bytes.append(contentsOf: row.body)
            let length = UInt32(bytes.count - start - 8)
            let checksum = CRC32.of(bytes[(start + 8)...])
            for index in 0..<4 {
                bytes[start + index] = UInt8(truncatingIfNeeded: length >> (8 * UInt32(index)))
                bytes[start + 4 + index] = UInt8(truncatingIfNeeded: checksum >> (8 * UInt32(index)))
            }
        }

        private static func integer<Number: FixedWidthInteger>(_ number: Number, to bytes: inout [UInt8]) {
            withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
        }

        private static func text(_ text: String, to bytes: inout [UInt8]) {
            integer(UInt32(text.utf8.count), to: &bytes)
            bytes.append(contentsOf: text.utf8)
        }

        /// Passes over what is damaged, as long as another event follows where its length says. Those that cannot be read are
        /// counted if they can come after `mark`.
        static func read(
            contentsOf path: String, after mark: Int64
        ) -> (events: [(sequence: Int64, event: RenderedEvent)], unreadable: Int) {
            // On Linux Foundation leaks a page with each empty file that it reads.
            var status = stat()
            guard stat(path, &status) == 0, status.st_size > 0,
                let data = try? Data(contentsOf: URL(fileURLWithPath: path))
            else { return ([], 0) }
            let bytes = [UInt8](data)
            var events: [(sequence: Int64, event: RenderedEvent)] = []
            var unreadable = 0
            var damaged = 0
            var position = 0
            while bytes.count - position > 8 {
                var header = Reader(rest: bytes[position..<position + 8])
                guard let length = header.integer(UInt32.self), let checksum = header.integer(UInt32.self),
                    length > 0, Int(length) <= bytes.count - position - 8
                else { break }
                let content = bytes[(position + 8)..<(position + 8 + Int(length))]
                position += 8 + Int(length)
                var reader = Reader(rest: content)
                guard CRC32.of(content) == checksum, let sequence = reader.integer(Int64.self),
                    let event = reader.event()
                else {
                    damaged += 1
                    continue
                }
                // Written again, or left over from before the file was emptied.
                let last = events.last?.sequence ?? 0
                guard sequence > last else { continue }
                events.append((sequence, event))
                // What is damaged at the end was never written whole.
                unreadable += max(0, min(damaged, Int(sequence - max(last, mark) - 1)))
                damaged = 0
            }
            return (events, unreadable)
        }

        private struct Reader {
            var rest: ArraySlice<UInt8>

            mutating func integer<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
                guard let bytes = take(Number.bitWidth / 8) else { return nil }
                return bytes.reversed().reduce(Number.zero) { $0 << 8 | Number(truncatingIfNeeded: $1) }
            }

            mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
                guard count <= rest.count else { return nil }
                defer { rest = rest.dropFirst(count) }
                return rest.prefix(count)
            }

            mutating func bytes() -> ArraySlice<UInt8>?? {
                guard let length = integer(UInt32.self) else { return nil }
                if length == Frame.noUser { return .some(nil) }
                return take(Int(length)).map { .some($0) }
            }

            mutating func event() -> RenderedEvent? {
                guard case .some(.some(let message)) = bytes(), let user = bytes(),
                    case .some(.some(let session)) = bytes(), case .some(.some(let body)) = bytes()
                else { return nil }
                return RenderedEvent(
                    messageID: String(decoding: message, as: UTF8.self),
                    userID: user.map { String(decoding: $0, as: UTF8.self) },
                    sessionID: String(decoding: session, as: UTF8.self), body: Array(body))
            }
        }
    }
}

/// The checksum of IEEE 802.3, as in gzip (RFC 1952, section 8).
enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(UInt32(byte)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }

    static func of(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        table.withUnsafeBufferPointer { table in
            bytes.withUnsafeBufferPointer { bytes in
                var value = UInt32.max
                for byte in bytes { value = table[Int((value ^ UInt32(byte)) & 0xFF)] ^ (value >> 8) }
                return ~value
            }
        }
    }
}
