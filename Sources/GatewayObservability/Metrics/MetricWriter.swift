internal import CountersignCore

/// What kind of number a metric is.
enum MetricKind: String, TextEnum {
    case counter, gauge, histogram
}

/// Takes metrics down in one of the forms that others read.
protocol MetricWriter {
    /// Begins a metric; its samples follow.
    mutating func begin(_ name: String, _ kind: MetricKind, help: String)

    /// A sample of the metric that was begun last.
    mutating func sample(_ labels: [(String, String)], _ value: Double)

    /// One histogram of the metric that was begun last.
    mutating func samples(_ histogram: Histogram, _ labels: [(String, String)])
}

extension MetricWriter {
    /// The only sample of the metric that was begun last.
    mutating func sample(_ value: Double) { sample([], value) }

    /// The only histogram of the metric that was begun last.
    mutating func samples(_ histogram: Histogram) { samples(histogram, []) }
}
