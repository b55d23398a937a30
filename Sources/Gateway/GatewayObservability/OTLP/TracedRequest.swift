internal import CountersignCore
internal import GatewayModel

/// The data of a request's spans. Trace ids are the only client data: no path, user or address.
struct TracedRequest: Sendable {
    private let span: RequestSpan
    private let method: String
    private let route: String?
    private let status: Int?
    private let code: String?
    private let appID: String?
    private let verdict: VerdictKind?
    private let authCode: AuthErrorCode?
    private let accepted: Int

    /// Nil when the trace is not recorded.
    init?(_ record: RequestRecord) {
        guard let span = record.context.span else { return nil }
        self.span = span
        method = Self.methods.contains(record.method) ? record.method : "_OTHER"
        route = record.context.route
        status = record.status
        code = record.code
        appID = record.context.appID
        verdict = record.context.verdict
        authCode = record.context.authCode
        accepted = record.context.accepted
    }

    /// The standard methods. Clients may send any other, which is exported as `_OTHER`.
    private static let methods: BytewiseSet = [
        "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
    ]

    private enum Kind: Int64 {
        // The values of trace.proto.
        case `internal` = 1
        case server = 2
    }

    var spanCount: Int { parts.reduce(1) { $0 + $1.count } }

    private struct Part {
        let name: String
        let began: UInt64
        let ended: UInt64
        var error: String?
        var children: [Part] = []

        var count: Int { 1 + children.reduce(0) { $0 + $1.count } }
    }

    private var parts: [Part] {
        var parts: [Part] = []
        if span.admissionEnded > 0 {
            let isVerified = [.accepted, .acceptedWithWarning, .rejected].contains(verdict)
            let verify = Part(
                name: "verify", began: span.verifyBegan, ended: span.verifyEnded, error: authCode?.reason)
            parts.append(
                Part(
                    name: "admission", began: span.handlingBegan, ended: span.admissionEnded,
                    error: verdict == .rejected ? authCode?.reason : nil,
                    children: isVerified ? [verify] : []))
        }
        if span.storeEnded > 0 {
            parts.append(Part(name: "store", began: span.storeBegan, ended: span.storeEnded))
        }
        if let last = parts.last {
            parts.append(Part(name: "answer", began: last.ended, ended: span.ended))
        }
        return parts
    }

    /// The request's span comes first. `epoch` is the zero of the spans' clock, in nanoseconds since 1970.
    /// `random` returns 64 random bits for a span id.
    func spans(
        _ common: [(String, OTLPValue)], epoch: UInt64, random: () -> UInt64
    ) -> [JSONValue] {
        var attributes = common + [("http.request.method", .text(method))]
        if let route { attributes.append(("http.route", .text(route))) }
        if let status { attributes.append(("http.response.status_code", .integer(status))) }
        if let error = errorType { attributes.append(("error.type", .text(error))) }
        if let appID { attributes.append(("countersign.app", .text(appID))) }
        if let verdict { attributes.append(("countersign.verdict", .text(verdict.rawValue))) }
        if let authCode { attributes.append(("countersign.reason", .text(authCode.reason))) }
        if accepted > 0 { attributes.append(("countersign.events.accepted", .integer(accepted))) }
        let name = (method == "_OTHER" ? "HTTP" : method) + (route.map { " " + $0 } ?? "")
        let isFault = status.map { $0 >= 500 } ?? false
        var spans = [
            Self.span(
                span.context, parent: span.parentID, isRemote: span.parentID != nil, kind: .server, name,
                from: epoch + span.began, to: epoch + span.ended, attributes, isFault: isFault)
        ]
        for part in parts { append(part, below: span.context, to: &spans, epoch: epoch, random: random) }
        return spans
    }

    /// Nil for success. `_OTHER` means that the client disconnected before the response.
    private var errorType: String? {
        guard let status else { return "_OTHER" }
        return status >= 400 ? code ?? authCode?.reason ?? String(status) : nil
    }

    private func append(
        _ part: Part, below parent: TraceParent, to spans: inout [JSONValue], epoch: UInt64,
        random: () -> UInt64
    ) {
        let own = TraceParent(traceID: parent.traceID, spanID: random(), isSampled: true)
        spans.append(
            Self.span(
                own, parent: parent.spanID, isRemote: false, kind: .internal, part.name,
                from: epoch + part.began, to: epoch + max(part.began, part.ended),
                part.error.map { [("error.type", .text($0))] } ?? [], isFault: false))
        for child in part.children { append(child, below: own, to: &spans, epoch: epoch, random: random) }
    }

    private static func span(
        _ context: TraceParent, parent: String?, isRemote: Bool, kind: Kind, _ name: String,
        from: UInt64, to: UInt64, _ attributes: [(String, OTLPValue)], isFault: Bool
    ) -> JSONValue {
        // The flags of trace.proto: sampled, remote parent known, and remote parent.
        let flags: Int64 = 0x101 | (isRemote ? 0x200 : 0)
        var members: JSONObject = [
            "traceId": .string(context.traceID), "spanId": .string(context.spanID),
            "flags": .integer(flags), "name": .string(name), "kind": .integer(kind.rawValue),
            "startTimeUnixNano": .string(String(from)), "endTimeUnixNano": .string(String(to)),
            "attributes": OTLPValue.attributes(attributes),
        ]
        if let parent { members["parentSpanId"] = .string(parent) }
        if isFault { members["status"] = ["code": 2] }
        return .object(members)
    }
}
