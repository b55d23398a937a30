/// Events in memory only: waiting for the writer, or in the batch that is being written.
struct UnwrittenEvents {
    private var waiting: [EventRecord] = []
    private(set) var count = 0
    private(set) var bytes = 0

    var isWaiting: Bool { !waiting.isEmpty }
    var waitingCount: Int { waiting.count }

    mutating func append(_ event: EventRecord) {
        waiting.append(event)
        count += 1
        bytes += event.bytes
    }

    /// Takes the oldest waiting events. `count` and `bytes` include them until `end`.
    mutating func begin(maximum: Int = .max) -> [EventRecord] {
        let batch = Array(waiting.prefix(maximum))
        waiting.removeFirst(batch.count)
        return batch
    }

    mutating func end(_ batch: [EventRecord]) {
        count -= batch.count
        bytes -= batch.reduce(0) { $0 + $1.bytes }
    }

    mutating func retry(_ batch: [EventRecord]) { waiting.insert(contentsOf: batch, at: 0) }
}
