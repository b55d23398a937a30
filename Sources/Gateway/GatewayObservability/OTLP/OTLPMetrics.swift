internal import CountersignCore

/// Metrics in OTLP. Counters are cumulative since the start of the gateway, so a lost export loses no counts.
struct OTLPMetrics {
    private let startTime: JSONValue
    private let time: JSONValue

    /// The start of counting and the current time, in nanoseconds since 1970.
    init(startTime: UInt64, time: UInt64) {
        self.startTime = .string(String(startTime))
        self.time = .string(String(time))
    }

    /// Nil without samples.
    func json(_ family: MetricFamily) -> JSONValue? {
        guard !family.samples.isEmpty else { return nil }
        var data: JSONObject = [
            "dataPoints": .array(family.samples.map { point($0.labels, $0.value, family.kind) })
        ]
        let member: String
        switch family.kind {
        case .gauge: member = "gauge"
        case .counter:
            member = "sum"
            data["aggregationTemporality"] = Self.cumulative
            data["isMonotonic"] = true
        case .histogram:
            member = "histogram"
            data["aggregationTemporality"] = Self.cumulative
        }
        return .object([
            "name": .string(family.name), "description": .string(family.help),
            "unit": .string(Self.unit(of: family.name)), member: .object(data),
        ])
    }

    private func point(
        _ labels: MetricFamily.Labels, _ value: MetricFamily.Value, _ kind: MetricFamily.Kind
    ) -> JSONValue {
        var members: JSONObject = [
            "timeUnixNano": time,
            "attributes": OTLPValue.attributes(labels.map { ($0, .text($1)) }),
        ]
        if kind != .gauge { members["startTimeUnixNano"] = startTime }
        switch value {
        case .number(let number) where kind == .counter:
            members["asInt"] = .string(String(Int64(number)))
        case .number(let number): members["asDouble"] = .number(number)
        case .histogram(let histogram):
            members["count"] = .string(String(histogram.counts.reduce(0, +)))
            members["sum"] = .number(histogram.sum)
            members["bucketCounts"] = .array(histogram.counts.map { .string(String($0)) })
            members["explicitBounds"] = .array(histogram.bounds.map { .number($0) })
        }
        return .object(members)
    }

    /// AGGREGATION_TEMPORALITY_CUMULATIVE.
    private static let cumulative: JSONValue = 2

    /// The unit (UCUM), derived from the suffix of the metric's name.
    private static func unit(of name: String) -> String {
        name.hasSuffix("_seconds") ? "s" : name.hasSuffix("_bytes") ? "By" : "1"
    }
}
