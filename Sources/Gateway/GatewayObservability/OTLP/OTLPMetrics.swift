internal import CountersignCore

/// Metrics in OTLP. Counters are cumulative since the start of the gateway, so a lost export loses no counts.
struct OTLPMetrics: MetricWriter {
    private let startTime: JSONValue
    private let time: JSONValue
    private var written: [JSONValue] = []
    private var name = ""
    private var kind = MetricKind.gauge
    private var help = ""
    private var points: [JSONValue] = []

    /// The start of counting and the current time, in nanoseconds since 1970.
    init(startTime: UInt64, time: UInt64) {
        self.startTime = .string(String(startTime))
        self.time = .string(String(time))
    }

    var metrics: [JSONValue] { written + finished }

    mutating func begin(_ name: String, _ kind: MetricKind, help: String) {
        written += finished
        self.name = name
        self.kind = kind
        self.help = help
        points = []
    }

    mutating func sample(_ labels: [(String, String)], _ value: Double) {
        switch kind {
        case .counter:
            add(labels, ["startTimeUnixNano": startTime, "asInt": .string(String(Int64(value)))])
        case .gauge, .histogram: add(labels, ["asDouble": .number(value)])
        }
    }

    mutating func samples(_ histogram: Histogram, _ labels: [(String, String)]) {
        add(
            labels,
            [
                "startTimeUnixNano": startTime,
                "count": .string(String(histogram.counts.reduce(0, +))), "sum": .number(histogram.sum),
                "bucketCounts": .array(histogram.counts.map { .string(String($0)) }),
                "explicitBounds": .array(histogram.bounds.map { .number($0) }),
            ])
    }

    private mutating func add(_ labels: [(String, String)], _ members: JSONObject) {
        var members = members
        members["timeUnixNano"] = time
        members["attributes"] = OTLPValue.attributes(labels.map { ($0.0, .text($0.1)) })
        points.append(.object(members))
    }

    /// AGGREGATION_TEMPORALITY_CUMULATIVE.
    private static let cumulative: JSONValue = 2

    private var finished: [JSONValue] {
        guard !points.isEmpty else { return [] }
        let data: (String, JSONValue) =
            switch kind {
            case .counter:
                (
                    "sum",
                    [
                        "dataPoints": .array(points), "aggregationTemporality": Self.cumulative,
                        "isMonotonic": true,
                    ]
                )
            case .gauge: ("gauge", ["dataPoints": .array(points)])
            case .histogram:
                (
                    "histogram",
                    ["dataPoints": .array(points), "aggregationTemporality": Self.cumulative]
                )
            }
        return [
            .object([
                "name": .string(name), "description": .string(help), "unit": .string(unit), data.0: data.1,
            ])
        ]
    }

    /// The unit (UCUM), derived from the suffix of the metric's name.
    private var unit: String {
        name.hasSuffix("_seconds") ? "s" : name.hasSuffix("_bytes") ? "By" : "1"
    }
}
