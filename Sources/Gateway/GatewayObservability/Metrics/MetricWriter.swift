internal import CountersignCore

enum MetricKind: String, TextEnum {
    case counter, gauge, histogram
}

/// Writes metrics in an exposition format.
protocol MetricWriter {
    /// Begins a metric. Its samples follow.
    mutating func begin(_ name: String, _ kind: MetricKind, help: String)

    /// Writes a sample of the current metric.
    mutating func sample(_ labels: [(String, String)], _ value: Double)

    /// Writes a histogram of the current metric.
    mutating func samples(_ histogram: Histogram, _ labels: [(String, String)])
}

extension MetricWriter {
    mutating func sample(_ value: Double) { sample([], value) }

    mutating func samples(_ histogram: Histogram) { samples(histogram, []) }
}
