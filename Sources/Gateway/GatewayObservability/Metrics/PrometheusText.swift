/// Metrics in Prometheus' text format, version 0.0.4.
struct PrometheusText {
    private(set) var bytes: [UInt8] = []

    init(_ families: [MetricFamily]) {
        for family in families {
            put("# HELP \(family.name) \(family.help)\n# TYPE \(family.name) \(family.kind.rawValue)\n")
            for (labels, value) in family.samples {
                switch value {
                case .number(let number): put(family.name, labels, number)
                case .histogram(let histogram): put(family.name, labels, histogram)
                }
            }
        }
    }

    private mutating func put(_ name: String, _ labels: MetricFamily.Labels, _ histogram: Histogram) {
        var running = 0
        for (index, count) in histogram.counts.enumerated() {
            running += count
            let bound =
                index < histogram.bounds.count ? Self.text(histogram.bounds[index]) : "+Inf"
            put(name + "_bucket", labels + [("le", bound)], Double(running))
        }
        put(name + "_sum", labels, histogram.sum)
        put(name + "_count", labels, Double(running))
    }

    private mutating func put(_ name: String, _ labels: MetricFamily.Labels, _ value: Double) {
        put(name)
        if !labels.isEmpty {
            put("{")
            for (index, label) in labels.enumerated() {
                if index > 0 { put(",") }
                put(label.0)
                put("=\"")
                for byte in label.1.utf8 {
                    switch byte {
                    case UInt8(ascii: "\\"), UInt8(ascii: "\""): bytes += [UInt8(ascii: "\\"), byte]
                    case UInt8(ascii: "\n"): put("\\n")
                    default: bytes.append(byte)
                    }
                }
                put("\"")
            }
            put("}")
        }
        put(" \(Self.text(value))\n")
    }

    private mutating func put(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    private static func text(_ value: Double) -> String {
        Int64(exactly: value).map { String($0) } ?? "\(value)"
    }
}
