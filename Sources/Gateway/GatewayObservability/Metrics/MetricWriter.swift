internal import CountersignCore

enum MetricKind: String, TextEnum {
    case counter, gauge, histogram
}

protocol MetricWriter {
    mutating func begin(_ name: String, _ kind: MetricKind, help: String)

    mutating func sample(_ labels: [(String, String)], _ value: Double)

    mutating func samples(_ histogram: Histogram, _ labels: [(String, String)])
}

extension MetricWriter {
    mutating func sample(_ value: Double) { sample([], value) }

    mutating func samples(_ histogram: Histogram) { samples(histogram, []) }
}
