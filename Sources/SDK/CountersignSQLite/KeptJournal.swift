#if os(Linux)
    internal import CSQLite
    internal import CountersignCore

    #if canImport(Glibc)
        internal import Glibc
    #elseif canImport(Musl)
        internal import Musl
    #endif

    /// SQLite's default VFS, except that it flushes the directory of a truncated journal only once.
    ///
    /// SQLite opens a truncated journal with `SQLITE_OPEN_CREATE` in each transaction, and then flushes its directory
    /// as for a new file. This VFS omits the flag once the directory entry is durable (see docs/adr/0014).
    enum KeptJournal {
        private typealias OpenDirectory =
            @convention(c) (
                _ path: UnsafePointer<CChar>?, _ descriptor: UnsafeMutablePointer<Int32>?
            ) -> Int32

        private struct FileID: Equatable {
            let device: dev_t
            let number: ino_t
        }

        /// The journals whose directory entries are durable, by path.
        private static let durable = Lock([String: FileID]())
        nonisolated(unsafe) private static let base = sqlite3_vfs_find(nil)

        /// The name of the VFS; nil selects the default VFS.
        static let vfs: String? = {
            guard let base else { return nil }
            let name = "countersign-kept-journal"
            let copy = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
            copy.initialize(to: base.pointee)
            copy.pointee.pNext = nil
            copy.pointee.zName = UnsafePointer(strdup(name))
            copy.pointee.xOpen = { _, path, file, flags, outFlags in
                KeptJournal.open(path, flags) {
                    KeptJournal.base?.pointee.xOpen(KeptJournal.base, path, file, $0, outFlags)
                        ?? SQLITE_CANTOPEN
                }
            }
            return sqlite3_vfs_register(copy, 0) == SQLITE_OK ? name : nil
        }()

        private static func open(
            _ name: UnsafePointer<CChar>?, _ flags: Int32, _ open: (_ flags: Int32) -> Int32
        ) -> Int32 {
            guard let path = name.map({ String(cString: $0) }) else { return open(flags) }
            if flags & SQLITE_OPEN_MAIN_DB != 0 {
                // The database file and its journal may have been replaced by new files.
                durable.withLock { $0["\(path)-journal"] = nil }
            }
            guard flags & SQLITE_OPEN_MAIN_JOURNAL != 0, flags & SQLITE_OPEN_READWRITE != 0 else {
                return open(flags)
            }
            guard flags & SQLITE_OPEN_CREATE != 0 else {
                // SQLite reads the journal of an ended process, which may not have flushed the directory.
                durable.withLock { $0[path] = nil }
                return open(flags)
            }
            if let known = durable.withLock({ $0[path] }), known == fileID(path),
                open(flags & ~SQLITE_OPEN_CREATE) == SQLITE_OK
            {
                return SQLITE_OK
            }
            let code = open(flags)
            if code == SQLITE_OK {
                let isDurable = synchronizeDirectory(of: path)
                durable.withLock { $0[path] = isDurable ? fileID(path) : nil }
            }
            return code
        }

        private static func fileID(_ path: String) -> FileID? {
            var status = stat()
            return stat(path, &status) == 0 ? FileID(device: status.st_dev, number: status.st_ino) : nil
        }

        private static func synchronizeDirectory(of path: String) -> Bool {
            guard let base, let openDirectory = base.pointee.xGetSystemCall(base, "openDirectory") else {
                return false
            }
            var file: Int32 = -1
            guard unsafeBitCast(openDirectory, to: OpenDirectory.self)(path, &file) == SQLITE_OK, file >= 0
            else {
                return false
            }
            defer { close(file) }
            return fsync(file) == 0
        }
    }
#endif
