/// Metrics in Prometheus' text format, version 0.0.4.
struct PrometheusText: MetricWriter {
    private(set) var bytes: [UInt8] = []
    private var name = ""

    mutating func begin(_ name: String, _ kind: MetricKind, help: String) {
        self.name = name
        put("# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n")
    }

    mutating func sample(_ labels: [(String, String)], _ value: Double) {
        sample(suffix: "", labels, value)
    }

    mutating func samples(_ histogram: Histogram, _ labels: [(String, String)]) {
        var running = 0
        for (index, count) in histogram.counts.enumerated() {
            running += count
            let bound =
                index < histogram.bounds.count ? Self.text(histogram.bounds[index]) : "+Inf"
            sample(suffix: "_bucket", labels + [("le", bound)], Double(running))
        }
        sample(suffix: "_sum", labels, histogram.sum)
        sample(suffix: "_count", labels, Double(running))
    }

    private mutating func sample(suffix: String, _ labels: [(String, String)], _ value: Double) {
        put(name)
        put(suffix)
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
