internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

/// A write-ahead log of events for the queue file. A plain write makes events survive the process, and one
/// `fdatasync`, which blocks no write, makes them durable (see docs/adr/0014).
///
/// Each client writes its own logs, so no lock is needed. The queue file stores a checkpoint for each log,
/// so each event enters the queue exactly once, whichever process moves it. Uses three files in turn: a
/// file is emptied only after the next transaction has made the move of its events durable.
///
/// Not thread-safe except for `synchronize()` and `reclaim(through:)`. `Recorder` holds a lock.
package final class IncomingLog: @unchecked Sendable {
    /// One file. Closed when the last reference is released.
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
        /// The sequence number of the last event in the file.
        var last: Int64 = 0
        var mustSync = false
    }

    private struct State {
        var slots: [Slot] = []
        /// The index of the slot for writes.
        var active = 0
        /// True while the directory entries of the files may not be durable.
        var mustSyncDirectory = false
        /// The number of calls of `restart()`. A flush that began before a call does not cover the files after it.
        var generation = 0
        /// True after a failed flush. The system then drops the pages that it could not write, so another
        /// flush would succeed without them.
        var hasFailed = false
    }

    /// The log's name in the queue file.
    let id: String
    private let directory: URL
    private let makeDurable: @Sendable (_ descriptor: Int32) -> Bool
    private let empty: @Sendable (_ descriptor: Int32) -> Bool
    /// A lock, because `synchronize()` and `reclaim(through:)` run on other threads.
    private let state = Lock(State())
    /// Held while files are emptied, which may take long. Acquired before `state`.
    private let emptying = NSLock()
    /// Held during `restart(keeping:)`. Acquired before `emptying`.
    private let restarting = NSLock()
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

    /// The events with sequence numbers in `range`, in order.
    func events(in range: ClosedRange<Int64>) -> [(sequence: Int64, event: RenderedEvent)] {
        let paths = state.withLock { $0.slots.map(\.file.path) }
        return Found(id: id, processID: getpid(), paths: paths).events(after: range.lowerBound - 1).events
            .filter { $0.sequence <= range.upperBound }
    }

    /// The sequence number of the last appended event.
    var last: Int64 { lastSequence }

    /// Appends events with consecutive sequence numbers and returns the last number. The events then
    /// survive the process, but not a power failure. Throws if nothing was appended.
    func append(_ rows: [RenderedEvent]) throws -> Int64 {
        try append(numbered: zip((lastSequence + 1)..., rows).map { ($0, $1) })
        lastSequence += Int64(rows.count)
        return lastSequence
    }

    /// Appends events with given sequence numbers. Throws if nothing was appended.
    func append(numbered events: [(sequence: Int64, event: RenderedEvent)]) throws {
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
            // A partial event at the end would hide later events.
            if ftruncate(slot.file.descriptor, off_t(slot.size)) != 0 { state.withLock { $0.slots = [] } }
            throw error
        }
        state.withLock { state in
            state.slots[state.active].size += Int64(bytes.count)
            state.slots[state.active].last = max(last, state.slots[state.active].last)
            state.slots[state.active].mustSync = true
        }
    }

    /// Makes all events appended before the call durable. After a disk failure the content on disk is
    /// unknown, so it throws until `restart()`.
    func synchronize() throws {
        // Repeat if the log was restarted meanwhile, because the events may be in the new files only.
        while try synchronizeFiles() == false {}
    }

    /// Returns false if the log was restarted meanwhile.
    private func synchronizeFiles() throws -> Bool {
        let (files, mustSyncDirectory, generation, hasFailed) = restarting.withLock {
            state.withLock { state in
                let files = state.slots.filter(\.mustSync).map(\.file)
                let mustSyncDirectory = state.mustSyncDirectory
                for index in state.slots.indices { state.slots[index].mustSync = false }
                state.mustSyncDirectory = false
                return (files, mustSyncDirectory, state.generation, state.hasFailed)
            }
        }
        guard !hasFailed else { throw CountersignError(.notStored, "the disk failed before") }
        var failed: (any Error)?
        for file in files where !makeDurable(file.descriptor) {
            failed = Self.error("fdatasync", file.path)
            break
        }
        if failed == nil, mustSyncDirectory {
            let code = synchronizeFile(directory.path)
            if code != 0 {
                failed = CountersignError(
                    .notStored, "fsync: \(String(cString: strerror(code))) (\(directory.path))")
            }
        }
        return try restarting.withLock {
            try state.withLock { state in
                guard state.generation == generation else { return false }
                guard let failed else { return true }
                state.hasFailed = true
                throw failed
            }
        }
    }

    package static func makeDurable(_ descriptor: Int32) -> Bool {
        #if canImport(Darwin)
            fcntl(descriptor, F_BARRIERFSYNC) == 0 || fsync(descriptor) == 0
        #else
            fdatasync(descriptor) == 0
        #endif
    }

    static func empty(_ descriptor: Int32) -> Bool { ftruncate(descriptor, 0) == 0 }

    /// Switches writes to an empty file, if there is one, so that the other files can be emptied.
    func rotate() {
        state.withLock { state in
            guard !state.slots.isEmpty, state.slots[state.active].size > 0,
                let empty = state.slots.indices.first(where: { state.slots[$0].size == 0 })
            else { return }
            state.active = empty
        }
    }

    /// Empties files without events after `sequence`, except for the file in use. Does not block writes.
    func reclaim(through sequence: Int64) {
        emptying.withLock {
            let spent = state.withLock { state in
                state.slots.indices.filter {
                    $0 != state.active && state.slots[$0].size > 0 && state.slots[$0].last <= sequence
                }.map { (index: $0, file: state.slots[$0].file) }
            }
            for (index, file) in spent where empty(file.descriptor) {
                state.withLock { state in
                    // A failed write may have removed all slots.
                    guard !state.slots.isEmpty else { return }
                    state.slots[index].size = 0
                    state.slots[index].mustSync = true
                }
            }
        }
    }

    /// Starts again with empty files and writes `events` there. Keeps their sequence numbers, because the
    /// queue file may already have these events. If it fails, `synchronize()` throws until the next call.
    func restart(keeping events: [(sequence: Int64, event: RenderedEvent)] = []) {
        restarting.withLock {
            emptying.withLock {
                state.withLock { state in
                    for slot in state.slots where slot.size > 0 { _ = empty(slot.file.descriptor) }
                    state = State(generation: state.generation + 1)
                }
            }
            do {
                try append(numbered: events)
            } catch {
                state.withLock { $0.hasFailed = true }
            }
        }
    }

    /// Removes the files. The queue file must have all their events.
    func remove() {
        restarting.withLock {
            emptying.withLock {
                state.withLock { state in
                    for slot in state.slots { unlink(slot.file.path) }
                    state = State(generation: state.generation + 1)
                }
            }
        }
    }

    /// Opens the files. Creates them again if they were moved or deleted.
    private func openFiles() throws {
        let areThere = state.withLock { state in
            !state.slots.isEmpty && Self.isInPlace(state.slots[state.active].file)
        }
        if areThere { return }
        // Wait while a file is being emptied, because this may open it again and write to it.
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
        // Use an empty file. Events after a partial write could not be read.
        let active = made.firstIndex { $0.size == 0 } ?? 0
        state.withLock {
            $0 = State(
                slots: made, active: active, mustSyncDirectory: true, generation: $0.generation,
                hasFailed: $0.hasFailed)
        }
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
        /// Same as the id of the `LeaseHolder` that writes it.
        let id: String
        /// The process that writes it.
        let processID: Int32
        var paths: [String] = []
        /// The time of the last write, in seconds since 1970.
        var modified: TimeInterval = 0

        /// The events of a log after a sequence number.
        struct Contents {
            /// In order.
            var events: [(sequence: Int64, event: RenderedEvent)] = []
            /// The number of events that cannot be read.
            var unreadable = 0
            /// The files with damage.
            var damagedPaths: [String] = []
        }

        func events(after sequence: Int64) -> Contents {
            var contents = Contents()
            var events: [Int64: RenderedEvent] = [:]
            var damagedEnds: [Int64] = []
            for path in paths {
                let file = Frame.read(contentsOf: path)
                if file.isDamaged { contents.damagedPaths.append(path) }
                if let number = file.damagedEnd { damagedEnds.append(number) }
                for (number, event) in file.events where number > sequence { events[number] = event }
            }
            contents.events = events.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            // Sequence numbers have no gaps, so missing numbers are unreadable events.
            if !contents.damagedPaths.isEmpty, let last = contents.events.last?.sequence {
                let (count, overflows) = last.subtractingReportingOverflow(sequence)
                if !overflows { contents.unreadable = Int(count) - contents.events.count }
            }
            // A damaged end of a file after the last readable event counts as one event.
            let last = max(sequence, contents.events.last?.sequence ?? sequence)
            if damagedEnds.contains(where: { $0 > last }) { contents.unreadable += 1 }
            return contents
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

    /// The format of an event: length of the rest, CRC-32 of the rest, sequence number, message id, user,
    /// session, body and the optional provisional device id. Integers are little-endian. Strings and bodies
    /// have a length prefix.
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
            // Earlier versions ignore everything after the body.
            if let id = row.provisionalID { text(id, to: &bytes) }
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

        /// Reads the events of a file. After a damaged event, continues with the next valid one. A body is
        /// JSON without zero bytes, so no part of an event looks like an event.
        ///
        /// An event that is cut off at the end of the file, or that ends in zeros, was never written
        /// completely. It does not count as damage.
        ///
        /// `damagedEnd` is the sequence number of a damaged event at the end of the file.
        static func read(
            contentsOf path: String
        ) -> (events: [(sequence: Int64, event: RenderedEvent)], isDamaged: Bool, damagedEnd: Int64?) {
            // On Linux Foundation leaks a page with each empty file that it reads.
            var status = stat()
            guard stat(path, &status) == 0, status.st_size > 0,
                let data = try? Data(contentsOf: URL(fileURLWithPath: path))
            else { return ([], false, nil) }
            let bytes = [UInt8](data)
            var events: [(sequence: Int64, event: RenderedEvent)] = []
            var isDamaged = false
            var damagedEnd: Int64?
            var position = 0
            func take(_ frame: (sequence: Int64, event: RenderedEvent, end: Int)) {
                position = frame.end
                // A repeated event, or an event left over from before the file was emptied.
                if frame.sequence > events.last?.sequence ?? 0 {
                    events.append((frame.sequence, frame.event))
                }
            }
            while bytes.count - position > 8 {
                if let frame = frame(in: bytes, at: position) {
                    take(frame)
                    continue
                }
                let next = (position + 1..<bytes.count).first { self.frame(in: bytes, at: $0) != nil }
                if let next {
                    isDamaged = true
                    position = next
                    continue
                }
                let rest = bytes.count - position - 8
                if let frame = frame(in: bytes, at: position, length: rest) {
                    // Only the length field is damaged.
                    isDamaged = true
                    take(frame)
                    break
                }
                var header = Reader(rest: bytes[position...])
                let length = header.integer(UInt32.self).map(Int.init) ?? 0
                let isCut = length > rest
                if !isCut, !bytes[position...].allSatisfy({ $0 == 0 }) {
                    isDamaged = true
                    _ = header.integer(UInt32.self)
                    let number = header.integer(Int64.self) ?? 0
                    damagedEnd = events.last.map { $0.sequence &+ 1 } ?? (number > 0 ? number : .max)
                }
                break
            }
            return (events, isDamaged, damagedEnd)
        }

        /// Decodes the event at `position`. Nil if no event begins there. `given` replaces the length in
        /// the header.
        private static func frame(
            in bytes: [UInt8], at position: Int, length given: Int? = nil
        ) -> (sequence: Int64, event: RenderedEvent, end: Int)? {
            var header = Reader(rest: bytes[position...])
            guard let length = header.integer(UInt32.self), let checksum = header.integer(UInt32.self),
                given ?? Int(length) > 0, let content = header.take(given ?? Int(length))
            else { return nil }
            var reader = Reader(rest: content)
            // Verify the checksum last, because it is the most expensive check.
            guard let sequence = reader.integer(Int64.self), let event = reader.event(),
                CRC32.of(content) == checksum
            else { return nil }
            return (sequence, event, content.endIndex)
        }

        private struct Reader {
            var rest: ArraySlice<UInt8>

            mutating func integer<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
                let count = Number.bitWidth / 8
                guard count <= rest.count else { return nil }
                var number = Number.zero
                for index in 0..<count {
                    number |= Number(truncatingIfNeeded: rest[rest.startIndex + index]) << (8 * index)
                }
                rest = rest[(rest.startIndex + count)...]
                return number
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
                var provisionalID: String?
                if !rest.isEmpty {
                    guard case .some(.some(let id)) = bytes() else { return nil }
                    provisionalID = String(decoding: id, as: UTF8.self)
                }
                return RenderedEvent(
                    messageID: String(decoding: message, as: UTF8.self),
                    userID: user.map { String(decoding: $0, as: UTF8.self) },
                    sessionID: String(decoding: session, as: UTF8.self), body: Array(body),
                    provisionalID: provisionalID)
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
