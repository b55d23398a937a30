internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// A location as uploaded: a JSON object, or an array if the template is an array.
struct LocationContent: RecordContent {
    let value: JSONValue

    var estimatedBytes: Int { value.estimatedBytes }

    func rendered(for record: EventRecord, anonymousID: String) -> [UInt8] { value.bytes }
}

/// Uploads as Transistorsoft's SDKs send them: records under a root property, beside parameters.
final class LocationDestination: Destination {
    struct Settings {
        var http: LocationConfiguration.HTTP
        var refreshStatuses: Set<Int>
        var userAgent = EventContext().userAgent
    }

    private struct State {
        var settings: Settings
        /// Events delivered since each collector began, by its number.
        var delivered: [Int: [QueuedEvent]] = [:]
        var lastCollector = 0
    }

    private let state: Lock<State>

    init(settings: Settings) {
        state = Lock(State(settings: settings))
    }

    func update(_ settings: Settings) {
        state.withLock { $0.settings = settings }
    }

    var settings: Settings { state.withLock { $0.settings } }

    /// Returns the number of the collector.
    func beginCollecting() -> Int {
        state.withLock { state in
            state.lastCollector += 1
            state.delivered[state.lastCollector] = []
            return state.lastCollector
        }
    }

    func endCollecting(_ id: Int) -> [QueuedEvent] {
        state.withLock { $0.delivered.removeValue(forKey: id) ?? [] }
    }

    func request(
        for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date
    ) -> TransportRequest {
        let settings = settings
        var headers = HeaderFields()
        headers["Content-Type"] = "application/json"
        headers["User-Agent"] = settings.userAgent
        for (name, value) in settings.http.headers { headers[name] = value }
        var request = TransportRequest(
            method: settings.http.method.uppercased(),
            // `LocationClient` sends nothing without a URL.
            url: settings.http.endpoint ?? URL(fileURLWithPath: "/"), headers: headers.fields,
            body: Self.body(events, http: settings.http), timeout: settings.http.timeout)
        request.isCompressible = settings.http.gzip
        return request
    }

    private static func body(_ events: [QueuedEvent], http: LocationConfiguration.HTTP) -> [UInt8] {
        var records: [UInt8] = []
        for (index, event) in events.enumerated() {
            if index > 0 { records.append(UInt8(ascii: ",")) }
            records.append(contentsOf: event.body)
        }
        if http.batchSync { records = [UInt8(ascii: "[")] + records + [UInt8(ascii: "]")] }
        guard http.rootProperty != "." else {
            // An array has no place for parameters.
            guard !http.batchSync, !http.params.isEmpty, let members = JSONDocument.object(records) else {
                return records
            }
            return JSONValue.object(http.params.merging(members) { _, own in own }).limited().bytes
        }
        let root = http.rootProperty.isEmpty ? "location" : http.rootProperty
        var body: [UInt8] = [UInt8(ascii: "{")]
        JSONValue.write(root, to: &body)
        body.append(UInt8(ascii: ":"))
        body.append(contentsOf: records)
        for (name, value) in http.params.sorted(by: { $0.key < $1.key }) where name != root {
            body.append(UInt8(ascii: ","))
            JSONValue.write(name, to: &body)
            body.append(UInt8(ascii: ":"))
            value.limited().write(to: &body)
        }
        body.append(UInt8(ascii: "}"))
        return body
    }

    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer {
        let body = ServerAnswerBody(response)
        let settings = settings
        if response.status == 401 || settings.refreshStatuses.contains(response.status) {
            var answer = ServerAnswer(Self.rejection(response, body: body), to: response)
            // Without a verdict the response may be from a proxy with its own clock.
            if body.verdict != nil {
                answer.serverTime = body.serverTime ?? ServerAnswer.serverTime(in: response)
            }
            return answer
        }
        if [419, 440, 498].contains(response.status) {
            // These statuses are not in RFC 9110. Servers use them for expired sessions or invalid tokens.
            return ServerAnswer(
                .configurationProblem(
                    .init("http_\(response.status)", "list it in refreshStatuses if it rejects a token")),
                status: response.status)
        }
        let answer = body.answer(to: response, eventCount: events.count) { body in
            guard settings.http.acknowledges(response) || response.status == 400 else { return nil }
            // Most servers return nothing about the records. A gateway returns the result of each.
            guard let accepted = body.accepted else {
                if response.status == 400 { return nil }
                return .accepted(duplicates: 0, rejected: [], warning: nil)
            }
            return body.accepted(
                count: accepted, duplicates: body.duplicates ?? 0, rejected: body.rejected ?? [],
                eventCount: events.count)
                ?? (response.status == 400 ? nil : .accepted(duplicates: 0, rejected: [], warning: nil))
        }
        if case .accepted(_, let rejected, _) = answer.meaning {
            let indices = Set(rejected.map(\.index))
            state.withLock { state in
                let delivered = events.enumerated().filter { !indices.contains($0.offset) }.map(
                    \.element)
                for id in state.delivered.keys { state.delivered[id]?.append(contentsOf: delivered) }
            }
        }
        return answer
    }

    /// A token problem, unless `WWW-Authenticate` has a code for which another token would not help (RFC 6750, section
    /// 3.1; RFC 9449, section 9).
    private static func rejection(_ response: TransportResponse, body: ServerAnswerBody)
        -> ServerAnswer.Meaning
    {
        let challenge = response.header("WWW-Authenticate")?.lowercased() ?? ""
        for code in ["insufficient_scope", "use_dpop_nonce"] where challenge.contains(code) {
            return .configurationProblem(.init(code, "another token would not help"))
        }
        if let verdict = body.verdict { return .tokenProblem(verdict) }
        return .tokenProblem(.init(code: .expired, reason: "http_\(response.status)"))
    }
}
