internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

/// A small value in a file with two slots, which are overwritten in turn. Any thread and several processes may write;
/// the last write counts.
///
/// A write takes microseconds, and no disk space if the value fits a slot. It survives the end of the process, and
/// after `synchronize()` a power failure. If a power failure has damaged the newest slot, the value is unreadable,
/// because the older slot is outdated.
package final class SlotFile: Sendable {
    package enum Content: Equatable {
        case missing
        /// The file exists, but the system does not open it now.
        case inaccessible
        /// The last value is unknown.
        case unreadable
        case value([UInt8])
    }

    /// A checksum, the value's length, the number of the write (8 bytes each, little-endian), and the value.
    private struct Slot {
        static let headerBytes = 24

        let stamp: UInt64
        let value: [UInt8]

        /// Returns nil for damaged bytes. `isUnused` is true for a slot of zeros, which is new or was erased.
        static func read(_ bytes: ArraySlice<UInt8>) -> (slot: Slot?, isUnused: Bool) {
            func integer(_ index: Int) -> UInt64 {
                let start = bytes.startIndex + 8 * index
                return bytes[start..<(start + 8)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
            }
            let (checksum, length, stamp) = (integer(0), integer(1), integer(2))
            if checksum == 0, length == 0, stamp == 0 { return (nil, true) }
            let value = bytes.dropFirst(headerBytes)
            guard length <= UInt64(value.count),
                DataFolder.hash(bytes.dropFirst(8).prefix(headerBytes - 8 + Int(length))) == checksum
            else { return (nil, false) }
            return (Slot(stamp: stamp, value: Array(value.prefix(Int(length)))), false)
        }

        var bytes: [UInt8] {
            func bytes(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.littleEndian) { Array($0) } }
            let rest = bytes(UInt64(value.count)) + bytes(stamp) + value
            return bytes(DataFolder.hash(rest)) + rest
        }
    }

    private struct State {
        var file: OpenFile?
        var unsynchronized = 0
        var mustSyncDirectory = false
        /// The system drops pages that it could not write, and reports this to only one of several flushes.
        var failedFlushes = 0
        var mustWriteAgain = false
        var last: (stamp: UInt64, value: [UInt8]) = (0, [])
    }

    private static let smallestSlot = 4_096

    let path: String
    private let isProtected: Bool
    private let state = Lock(State())

    // `isProtected`: whether the file can be read only after the device's first unlock.
    package init(path: String, isProtected: Bool = true) {
        self.path = path
        self.isProtected = isProtected
    }

    package var content: Content {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno == ENOENT ? .missing : .inaccessible }
        guard let slots = Self.slots(OpenFile(descriptor)) else { return .unreadable }
        guard let newest = slots.compactMap(\.slot).max(by: { $0.stamp < $1.stamp }),
            slots.allSatisfy({ $0.slot != nil || $0.isUnused })
        else { return .unreadable }
        return .value(newest.value)
    }

    /// Nil writes an empty value but creates no file. After a failure the value is unreadable or the file is missing.
    package func write(_ value: [UInt8]?) throws {
        try state.withLock { state in
            do {
                try write(value, &state)
            } catch {
                invalidate(&state)
                throw error
            }
        }
    }

    /// Writes nothing if another process has written after `stamp`.
    private func write(_ value: [UInt8]?, unlessAfter stamp: UInt64 = .max, _ state: inout State) throws {
        if state.file.map({ !FileLock.isInPlace($0.descriptor, path) }) ?? true {
            let descriptor = open(path, O_RDWR | O_CLOEXEC)
            guard descriptor >= 0 || errno == ENOENT else { throw CountersignError.failed("open", path) }
            state.file = descriptor >= 0 ? OpenFile(descriptor) : nil
        }
        if value == nil, state.file == nil { return }
        let value = value ?? []
        let slots = state.file.flatMap { Self.slots($0) } ?? []
        let stamps = slots.map { $0.slot?.stamp ?? 0 }
        let newest = stamps.max() ?? 0
        if newest > stamp { return }
        let slot = Slot(stamp: newest + 1, value: value).bytes
        if let file = state.file, let size = Self.size(file), slots.count == 2, slot.count <= size / 2,
            slots.allSatisfy({ $0.slot != nil || $0.isUnused })
        {
            let index = stamps[0] <= stamps[1] ? 0 : 1
            // Overwrites the whole slot, so that no part of a longer value remains.
            let rest = [UInt8](repeating: 0, count: size / 2 - slot.count)
            try Self.write(slot + rest, to: file, at: index * size / 2, path)
        } else {
            state.file = try make(slot)
            state.mustSyncDirectory = true
        }
        state.unsynchronized += 1
        state.last = (newest + 1, value)
    }

    package func synchronize(by makeDurable: (_ descriptor: Int32) -> Bool) throws {
        let (file, count, failedFlushes, mustSyncDirectory) = try state.withLock { state in
            // After a failed flush, the next one succeeds without the lost pages. So write the newest value again.
            if state.mustWriteAgain {
                try write(state.last.value, unlessAfter: state.last.stamp, &state)
                state.mustWriteAgain = false
            }
            return (state.file, state.unsynchronized, state.failedFlushes, state.mustSyncDirectory)
        }
        guard let file, count > 0 else { return }
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let isDurable =
            makeDurable(file.descriptor) && (!mustSyncDirectory || synchronizeFile(directory) == 0)
        try state.withLock { state in
            guard isDurable, state.failedFlushes == failedFlushes else {
                state.failedFlushes += 1
                state.mustWriteAgain = true
                throw CountersignError(.notStored, "fsync: the disk failed (\(path))")
            }
            if state.unsynchronized == count {
                state.unsynchronized = 0
                state.mustSyncDirectory = false
                removeOlder(file)
            }
        }
    }

    package func remove() throws {
        try state.withLock { state in
            state = State()
            guard unlink(path) == 0 || errno == ENOENT else { throw CountersignError.failed("unlink", path) }
        }
    }

    private func removeOlder(_ file: OpenFile) {
        guard let slots = Self.slots(file), let size = Self.size(file), slots.count == 2,
            let first = slots[0].slot, let second = slots[1].slot
        else { return }
        let index = first.stamp < second.stamp ? 0 : 1
        try? Self.write([UInt8](repeating: 0, count: size / 2), to: file, at: index * size / 2, path)
    }

    private func invalidate(_ state: inout State) {
        let isInvalid =
            state.file.map { file in
                guard let size = Self.size(file), size > 0 else { return false }
                let garbage = [UInt8](repeating: 0xFF, count: Slot.headerBytes)
                return [0, size / 2].allSatisfy {
                    (try? Self.write(garbage, to: file, at: $0, path)) != nil
                }
            } ?? false
        if !isInvalid { unlink(path) }
        state.file = nil
    }

    private func make(_ slot: [UInt8]) throws -> OpenFile {
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
        try makePrivateDirectory(directory.path)
        let temporary = DurableFile.temporaryPath(in: directory)
        let descriptor = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CountersignError.failed("open", path) }
        let file = OpenFile(descriptor)
        do {
            // Doubles the smallest size until the value fits, so that most slots have space for a longer value.
            var size = Self.smallestSlot
            while size < slot.count { size *= 2 }
            let empty = [UInt8](repeating: 0, count: 2 * size - slot.count)
            try Self.write(slot + empty, to: file, at: 0, path)
            #if os(iOS)
                if !isProtected {
                    try FileManager.default.setAttributes(
                        [.protectionKey: FileProtectionType.none], ofItemAtPath: temporary)
                }
            #endif
            guard rename(temporary, path) == 0 else { throw CountersignError.failed("rename", path) }
        } catch {
            unlink(temporary)
            throw error
        }
        return file
    }

    private static func slots(_ file: OpenFile) -> [(slot: Slot?, isUnused: Bool)]? {
        guard let size = size(file), size >= 2 * smallestSlot, size.isMultiple(of: 2) else { return nil }
        var bytes = [UInt8](repeating: 0, count: size)
        let count = bytes.withUnsafeMutableBytes { pread(file.descriptor, $0.baseAddress, size, 0) }
        guard count == size else { return nil }
        return [Slot.read(bytes[..<(size / 2)]), Slot.read(bytes[(size / 2)...])]
    }

    private static func size(_ file: OpenFile) -> Int? {
        var status = stat()
        return fstat(file.descriptor, &status) == 0 ? Int(status.st_size) : nil
    }

    private static func write(_ bytes: [UInt8], to file: OpenFile, at offset: Int, _ path: String) throws {
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes {
                pwrite(file.descriptor, $0.baseAddress, $0.count, off_t(offset + written))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw CountersignError.failed("write", path) }
            written += count
        }
    }
}
