internal import CountersignJSON

/// The response of a collector (OTLP specification, section OTLP/HTTP response).
package struct OTLPAnswer: Sendable {
    /// Nil without a response.
    let status: Int?
    let retryAfterSeconds: Int?
    let body: [UInt8]
    /// The reason why there is no response; nil with a response.
    let failure: String?

    package init(
        status: Int? = nil, retryAfterSeconds: Int? = nil, body: [UInt8] = [], failure: String? = nil
    ) {
        self.status = status
        self.retryAfterSeconds = retryAfterSeconds
        self.body = body
        self.failure = failure
    }

    var outcome: ExportSchedule.Outcome {
        switch status {
        case .some(200..<300): .taken
        case 429, 502, 503, 504, nil: .failed(retryAfter: retryAfterSeconds)
        default: .rejected
        }
    }

    /// The number of rejected spans, and a description; nil if the response has neither rejections nor a message.
    var partialSuccess: (spans: Int, detail: String)? {
        try? StrictJSONParser(maximumBytes: 1 << 16, maximumDepth: 8).parse(bytes: body) { root in
            guard let part = root["partialSuccess"], part.kind == .object else { return nil }
            func count(_ name: StaticString) -> Int {
                let number = part[name]?.int64.map { Int($0) } ?? part[name]?.string.flatMap { Int($0) } ?? 0
                // Limits the collector's numbers, so that their sum cannot overflow.
                return min(max(0, number), 1 << 31)
            }
            let spans = count("rejectedSpans")
            let rejected = spans + count("rejectedDataPoints")
            let message = part["errorMessage"]?.string ?? ""
            guard rejected > 0 || !message.isEmpty else { return nil }
            return (spans: spans, detail: "\(rejected) rejected: \(message.prefix(200))")
        }
    }
}
