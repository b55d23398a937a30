/// The events that the write-ahead log has and the queue file does not have yet.
struct LogIndex {
    struct Entry {
        let sequence: Int64
        let bytes: Int
        /// Nil if the event did not fit into memory. It is then read from the log.
        let event: RenderedEvent?
    }

    private(set) var appended: [Entry] = []
    /// The events of the running checkpoint. Separate from `appended`, because the writer appends during a checkpoint.
    private var moving: [Entry] = []
    private(set) var bytes = 0
    private var bytesInMemory = 0
    /// The sequence number of the last event in the queue file.
    private(set) var moved: Int64 = 0
    /// Highest sequence number known to be durable in the queue file.
    private(set) var durable: Int64 = 0

    var count: Int { moving.count + appended.count }

    mutating func append(_ event: RenderedEvent, bytes: Int, maximumInMemory: Int) {
        let hasRoom = bytesInMemory + bytes <= maximumInMemory
        appended.append(Entry(sequence: event.sequence, bytes: bytes, event: hasRoom ? event : nil))
        self.bytes += bytes
        if hasRoom { bytesInMemory += bytes }
    }

    mutating func beginCheckpoint() -> [Entry] {
        moving = appended
        appended = []
        return moving
    }

    /// The queue file has the first `count` events, through the sequence number `last`. Returns the last sequence
    /// number that is durable in the queue file: SQLite makes a transaction durable with the next one.
    mutating func endCheckpoint(_ count: Int, through last: Int64) -> Int64 {
        // If the events were wiped meanwhile, `moving` is empty.
        let moved = moving.prefix(count)
        release(moved)
        appended = Array(moving.dropFirst(moved.count)) + appended
        moving = []
        durable = self.moved
        self.moved = last
        return durable
    }

    mutating func failCheckpoint() {
        appended = moving + appended
        moving = []
    }

    mutating func remove(_ sequences: Set<Int64>) {
        release(appended.filter { sequences.contains($0.sequence) })
        appended.removeAll { sequences.contains($0.sequence) }
    }

    mutating func removeAll() -> Int {
        let count = count
        self = LogIndex(moved: moved, durable: durable)
        return count
    }

    private mutating func release(_ entries: some Sequence<Entry>) {
        for entry in entries {
            bytes -= entry.bytes
            if entry.event != nil { bytesInMemory -= entry.bytes }
        }
    }
}
