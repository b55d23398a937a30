#if os(Linux)
    import CSQLite
    import CountersignCore
    import Foundation
    import Testing

    @testable import CountersignSQLite

    /// Counts flushes of the directory of a journal: by `KeptJournal` when it opens a journal that may be
    /// new, and by SQLite when it flushes that journal.
    private enum Directories {
        typealias Open = @convention(c) (UnsafePointer<CChar>?, UnsafeMutablePointer<Int32>?) -> Int32

        private static let opened = Lock([String: Int]())
        /// SQLite and `KeptJournal` open a directory only to flush it.
        private static let original: Open? = {
            guard let vfs = sqlite3_vfs_find(nil),
                let call = vfs.pointee.xGetSystemCall(vfs, "openDirectory")
            else { return nil }
            let counting: Open = { path, file in
                // `path` is the path of a file in the directory.
                let directory = path.map {
                    URL(fileURLWithPath: String(cString: $0)).deletingLastPathComponent()
                }
                Directories.opened.withLock { $0[directory?.path ?? "", default: 0] += 1 }
                return Directories.original?(path, file) ?? SQLITE_CANTOPEN
            }
            _ = vfs.pointee.xSetSystemCall(
                vfs, "openDirectory", unsafeBitCast(counting, to: sqlite3_syscall_ptr.self))
            return unsafeBitCast(call, to: Open.self)
        }()

        /// Flushes of `directory` while `body` runs.
        static func flushes(of directory: URL, _ body: () throws -> Void) throws -> Int {
            _ = original
            let before = opened.withLock { $0[directory.path] ?? 0 }
            try body()
            return opened.withLock { $0[directory.path] ?? 0 } - before
        }
    }

    struct KeptJournalTests {
        private let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
            UUID().uuidString)

        private func connect(keepsJournal: Bool = true, mode: String = "TRUNCATE") throws -> SQLiteConnection
        {
            let database = try SQLiteConnection(
                path: directory.appendingPathComponent("file").path, keepsJournal: keepsJournal)
            try database.execute("PRAGMA journal_mode = \(mode); PRAGMA synchronous = NORMAL;")
            return database
        }

        private func withDatabase(
            keepsJournal: Bool = true, mode: String = "TRUNCATE", _ body: (SQLiteConnection) throws -> Void
        ) throws {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: directory) }
            let database = try connect(keepsJournal: keepsJournal, mode: mode)
            try database.execute("CREATE TABLE t (a)")
            try body(database)
        }

        /// Returns how often this number of transactions flushes the directory.
        private func flushes(_ transactions: Int = 1, of database: SQLiteConnection) throws -> Int {
            try Directories.flushes(of: directory) {
                for _ in 0..<transactions { try database.run("INSERT INTO t VALUES (1)") }
            }
        }

        private var journal: URL { directory.appendingPathComponent("file-journal") }

        @Test func aPersistentJournalFlushesItsDirectoryOnlyInItsFirstTransaction() throws {
            let all = try Directories.flushes(of: directory) {
                try withDatabase { database in
                    let later = try flushes(5, of: database)
                    #expect(later == 0)
                }
            }
            #expect(all == 2)
            try withDatabase(keepsJournal: false) { database in
                let usual = try flushes(5, of: database)
                #expect(usual == 5)
            }
        }

        @Test func aRecreatedJournalFlushesItsDirectoryAgain() throws {
            try withDatabase { database in
                try FileManager.default.removeItem(at: journal)
                #expect(try flushes(of: database) == 2)
                // The old journal stays, so that the new one is a different file.
                try FileManager.default.moveItem(at: journal, to: directory.appendingPathComponent("old"))
                try Data().write(to: journal)
                #expect(try flushes(of: database) == 2)
                #expect(try flushes(of: database) == 0)
            }
            try withDatabase(mode: "DELETE") { database in
                let count = try flushes(5, of: database)
                #expect(count == 10)
            }
        }

        /// SQLite flushes nothing of a transaction that is rolled back, and the next transaction opens an
        /// existing journal.
        @Test func aJournalCreatedByARolledBackTransactionFlushesItsDirectory() throws {
            try withDatabase { database in
                try FileManager.default.removeItem(at: journal)
                let count = try Directories.flushes(of: directory) {
                    try database.execute("BEGIN; INSERT INTO t VALUES (1); ROLLBACK")
                }
                #expect(count == 1)
                #expect(try flushes(of: database) == 0)
            }
        }

        /// The process that made the journal may have ended before the flush.
        @Test func aConnectionsFirstTransactionFlushesTheDirectoryOfAnExistingJournal() throws {
            try withDatabase { database in
                let other = try connect()
                #expect(try flushes(of: other) == 2)
                #expect(try flushes(of: database) == 0)
            }
        }

        @Test func aJournalAfterARollbackFlushesItsDirectoryAgain() throws {
            try withDatabase { database in
                let copies = ["file", "file-journal"].map { (name: $0, copy: $0 + "-copy") }
                // Copies the files as a kill before the commit leaves them. The rows do not fit into the cache.
                try database.execute("PRAGMA cache_size = 1; BEGIN")
                for _ in 0..<100 { try database.run("INSERT INTO t VALUES (zeroblob(2000))") }
                for (name, copy) in copies {
                    try FileManager.default.copyItem(
                        at: directory.appendingPathComponent(name), to: directory.appendingPathComponent(copy)
                    )
                }
                try database.execute("ROLLBACK")
                for (name, copy) in copies {
                    let bytes = try Data(contentsOf: directory.appendingPathComponent(copy))
                    // Overwrites the file in place, so that its inode stays the same.
                    let handle = try FileHandle(forWritingTo: directory.appendingPathComponent(name))
                    try handle.truncate(atOffset: 0)
                    try handle.write(contentsOf: bytes)
                    try handle.close()
                }
                let count = try database.first("SELECT count(*) FROM t") { row in row.int(0) }
                #expect(count == 0)
                #expect(try flushes(of: database) == 2)
            }
        }
    }
#endif
