struct Histogram: Sendable {
    /// The upper bounds of the buckets, ascending. A last bucket without a bound holds larger values.
    let bounds: [Double]
    private(set) var counts: [Int]
    private(set) var sum = 0.0

    init(_ bounds: [Double]) {
        self.bounds = bounds
        counts = [Int](repeating: 0, count: bounds.count + 1)
    }

    /// Buckets from half a millisecond to ten seconds.
    static let seconds = Histogram([
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
    ])
    /// Buckets from one event to the default limit of a batch.
    static let sizes = Histogram([1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000])

    mutating func observe(_ value: Double) {
        // Most values fall into the first few buckets, so this is faster than a binary search.
        var bucket = 0
        while bucket < bounds.count, value > bounds[bucket] { bucket += 1 }
        counts[bucket] += 1
        sum += value
    }

    mutating func add(_ other: Histogram) {
        for index in counts.indices { counts[index] += other.counts[index] }
        sum += other.sum
    }
}
