internal import CountersignCore

/// A metric with its samples, for Prometheus and OTLP.
struct MetricFamily {
    enum Kind: String, TextEnum {
        case counter, gauge, histogram
    }

    enum Value {
        case number(Double)
        case histogram(Histogram)
    }

    typealias Labels = [(String, String)]

    let name: String
    let kind: Kind
    let help: String
    let samples: [(labels: Labels, value: Value)]

    init(_ name: String, _ kind: Kind, _ help: String, _ samples: [(Labels, Double)]) {
        self.name = name
        self.kind = kind
        self.help = help
        self.samples = samples.map { ($0, .number($1)) }
    }

    /// A metric without labels. With nil, it has no sample.
    init(_ name: String, _ kind: Kind, _ help: String, _ value: Double?) {
        self.init(name, kind, help, value.map { [([], $0)] } ?? [])
    }

    init(_ name: String, _ help: String, histograms: [(Labels, Histogram)]) {
        self.name = name
        kind = .histogram
        self.help = help
        samples = histograms.map { ($0, .histogram($1)) }
    }
}
