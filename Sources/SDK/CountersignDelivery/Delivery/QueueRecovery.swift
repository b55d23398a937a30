internal import CountersignSQLite
internal import CountersignTransport
internal import Foundation

/// Copies the readable events of a damaged queue file into a new file. Renames the damaged file and never deletes it.
struct QueueRecovery {
    let path: String
    let limits: QueueLimits
    let clock: any ClientClock

    /// False for a lock, a full disk or a missing permission.
    static func isDamage(_ error: any Error) -> Bool {
        guard let error = error as? SQLiteError else { return false }
        // Missing tables or columns: the file is a database with another schema. Existing tables or columns: the
        // version of the schema is damaged.
        return error.isCorrupt || error.message.hasPrefix("no such ")
            || error.message.hasSuffix(" already exists") || error.message.hasPrefix("duplicate column name")
    }

    static func asideCount(besides path: String) -> Int {
        let url = URL(fileURLWithPath: path)
        let names =
            (try? FileManager.default.contentsOfDirectory(atPath: url.deletingLastPathComponent().path)) ?? []
        return names.count { $0.hasPrefix(url.lastPathComponent + ".damaged-") && !$0.hasSuffix("-journal") }
    }

    static func nextAsidePath(besides path: String) -> String {
        "\(path).damaged-\(asideCount(besides: path) + 1)"
    }

    func recover() throws -> EventQueue {
        let aside = try setAside()
        do {
            return try recover(from: aside)
        } catch {
            // After an error such as a full disk, move the files back, so that the next attempt finds the events.
            for suffix in Self.suffixes where FileManager.default.fileExists(atPath: aside + suffix) {
                try? FileManager.default.removeItem(atPath: path + suffix)
                try FileManager.default.moveItem(atPath: aside + suffix, toPath: path + suffix)
            }
            throw error
        }
    }

    private static let suffixes = ["", "-journal", "-wal", "-shm"]

    private func recover(from aside: String) throws -> EventQueue {
        let fresh = try EventQueue(path: path, limits: limits, clock: clock)
        let copy = path + ".salvage"
        try? FileManager.default.removeItem(atPath: copy)
        defer { try? FileManager.default.removeItem(atPath: copy) }
        try FileManager.default.copyItem(atPath: aside, toPath: copy)
        if try !salvage(from: copy, into: fresh) {
            // The first page has the schema, which all queue files share, so the page of a new file can replace a
            // damaged one.
            try? replaceFirstPage(of: copy, with: path)
            _ = try salvage(from: copy, into: fresh)
        }
        return fresh
    }

    private func setAside() throws -> String {
        let aside = Self.nextAsidePath(besides: path)
        try FileManager.default.moveItem(atPath: path, toPath: aside)
        for suffix in Self.suffixes.dropFirst() where FileManager.default.fileExists(atPath: path + suffix) {
            try FileManager.default.moveItem(atPath: path + suffix, toPath: aside + suffix)
        }
        return aside
    }

    /// Returns false if the tables are not readable. Throws if the disk is full.
    private func salvage(from copy: String, into fresh: EventQueue) throws -> Bool {
        guard let damaged = try? SQLiteConnection(path: copy),
            (try? damaged.integer("SELECT count(*) FROM sqlite_master WHERE name = 'event'")) == 1
        else { return false }
        let events = readableEvents(of: damaged)
        if events.isEmpty, (try? damaged.integer("SELECT count(*) FROM event NOT INDEXED")) == nil {
            return false
        }
        var counters: [EventQueue.Counter: Int] = [:]
        for counter in EventQueue.Counter.allCases {
            counters[counter] = try? damaged.integer(
                "SELECT value FROM counter WHERE name = ?", .text(counter.rawValue))
        }
        let settings =
            (try? damaged.all("SELECT name, value FROM setting") { row throws(SQLiteError) in
                (row.text(0), row.text(1))
            }) ?? []
        do {
            try fresh.restore(events, counters: counters, settings: settings)
            return true
        } catch let error as SQLiteError where error.isFull {
            throw error
        } catch {
            return false
        }
    }

    /// Reads rows in ascending and in descending order, each up to the damage, then single rows in between.
    private func readableEvents(of damaged: SQLiteConnection) -> [RenderedEvent] {
        let columns = "SELECT seq, message_id, user_id, session_id, body FROM event"
        var events: [Int64: RenderedEvent] = [:]
        func read(_ sql: String, _ values: SQLValue...) {
            guard let statement = try? damaged.prepare(sql), (try? statement.bind(values)) != nil else {
                return
            }
            while (try? statement.step()) == true {
                let body = statement.blob(4)
                guard events[statement.int64(0)] == nil, isJSON(body) else { continue }
                events[statement.int64(0)] = RenderedEvent(
                    sequence: statement.int64(0), messageID: statement.text(1),
                    userID: UserKey(column: statement.text(2)).userID, sessionID: statement.text(3),
                    body: body)
            }
        }
        read("\(columns) ORDER BY seq")
        let front = events.keys.max() ?? 0
        read("\(columns) ORDER BY seq DESC")
        let back = events.keys.filter { $0 > front }.min() ?? front
        if front >= 0, back <= EventQueue.maximumCount, back - front > 1 {
            // Each lookup walks the tree separately, so some succeed past the damage. Limited, as each costs time.
            for sequence in (front + 1)..<min(back, front + 20_000) {
                read("\(columns) WHERE seq = ?", .integer(sequence))
            }
        }
        return events.values.sorted { $0.sequence < $1.sequence }
    }

    /// False for a body that is no longer JSON, because SQLite does not detect flipped bits.
    private func isJSON(_ body: [UInt8]) -> Bool {
        (try? JSONSerialization.jsonObject(with: Data(body), options: .fragmentsAllowed)) != nil
    }

    private func replaceFirstPage(of copy: String, with fresh: String) throws {
        let page = 4_096
        let template = try FileHandle(forReadingFrom: URL(fileURLWithPath: fresh))
        defer { try? template.close() }
        guard var first = try template.read(upToCount: page), first.count == page,
            // The new file's page size (big-endian) must be 4,096. The copy's first page may be damaged.
            first[16] == 0x10, first[17] == 0x00
        else { return }
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: copy))
        defer { try? file.close() }
        let pages = UInt32(try file.seekToEnd() / UInt64(page))
        // Size in pages, and an empty list of free pages (https://sqlite.org/fileformat2.html#the_database_header).
        for (index, byte) in [24, 16, 8, 0].map({ UInt8(truncatingIfNeeded: pages >> $0) }).enumerated() {
            first[28 + index] = byte
        }
        for index in 32..<40 { first[index] = 0 }
        for index in 0..<4 { first[92 + index] = first[24 + index] }
        try file.seek(toOffset: 0)
        try file.write(contentsOf: first)
    }
}

extension EventQueue {
    func restore(
        _ events: [RenderedEvent], counters: [Counter: Int], settings: [(name: String, value: String)]
    ) throws {
        try connection.transaction {
            // A sequence number out of range is damaged. Its event comes last, because it gets the next free one.
            let range = 1...Int64(Self.maximumCount)
            for event in events.sorted(by: { range.contains($0.sequence) && !range.contains($1.sequence) }) {
                try connection.run(
                    """
                    INSERT INTO event (seq, message_id, user_id, session_id, queue_time_s, body)
                    VALUES (?, ?, ?, ?, 0, ?)
                    """,
                    range.contains(event.sequence) ? .integer(event.sequence) : .null, .text(event.messageID),
                    .text(event.userID ?? ""), .text(event.sessionID), .blob(event.body))
            }
            for (name, value) in settings { try save(value, as: name) }
            for (counter, count) in counters where counter != .rows && counter != .bytes {
                try add(counter, (0...Self.maximumCount).contains(count) ? count : 0)
            }
            try saveSize(
                Size(
                    rows: events.count,
                    bytes: events.reduce(0) { $0 + $1.body.count + Self.rowOverheadBytes }))
            try add(.salvaged, events.count)
            // The counter of rows may be damaged too. It is used only if the queue could hold as many events.
            let rows = counters[.rows] ?? events.count
            if (events.count...max(events.count, limits.maximumEvents)).contains(rows) {
                try add(.unreadable, rows - events.count)
            }
        }
    }
}
