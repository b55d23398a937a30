internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel

/// The events of a request. A class, because a copy would retain each of its arrays.
final class DecodedEvents {
    let request: HTTPRequest
    let limits: GatewayLimits
    let faults: EventFaults
    var userIDs = DistinctIDs()
    var profiles = CustomerChanges()
    var events: [EventBatch.Event] = []
    private(set) var rejected: [RejectedEvent] = []
    private(set) var warnings: [EventWarning] = []

    init(_ request: HTTPRequest, _ limits: GatewayLimits, _ faults: EventFaults) {
        self.request = request
        self.limits = limits
        self.faults = faults
    }

    private var index: Int { events.count + rejected.count }

    var room: Int { limits.batchEvents - index }

    func reject(_ code: String, _ reason: String) {
        rejected.append(RejectedEvent(index: index, code: code, reason: reason))
    }

    /// Returns false and rejects the event if it is not JSON, or if a member in `ids` has an unpaired surrogate.
    func isIntact(_ event: JSONNode, at json: Range<Int>, ids: [StaticString]) -> Bool {
        if let reason = faults.reason(for: json) {
            reject("invalid_json", reason)
        } else if faults.haveReplaced(ids, of: event, at: json, in: request.body) {
            rejected.append(.replacedID(index, ids.map(\.description).joined(separator: ", ")))
        } else {
            return true
        }
        return false
    }

    func fits(_ bytes: Int, _ subject: String = "an event") -> Bool {
        if bytes <= limits.eventBytes { return true }
        reject("event_too_large", "\(subject) may have at most \(limits.eventBytes) bytes")
        return false
    }

    /// The time of the next event in milliseconds since 1970; the time of receipt if `node` is missing. Adds a
    /// warning and returns the time of receipt if `node` cannot be read or is not after `earliest`.
    func time(
        of node: JSONNode?, at json: Range<Int>, _ unit: EventTime.Unit = .eitherOne,
        after earliest: Int64 = .min
    ) -> Int64 {
        let node = node.flatMap { $0.isNull ? nil : $0 }
        if let time = node.flatMap({ EventTime.milliseconds($0, unit) }), time > earliest { return time }
        if node != nil || faults.hasUnusableTime(json) { warnings.append(EventTime.warning(index)) }
        return request.receivedMilliseconds
    }

    func spans(of list: JSONNode, in root: JSONNode) throws(RejectedBody) -> [Range<Int>] {
        guard JSONSpans.count(list, upTo: room) <= room else { throw .tooMany("events", limits) }
        return request.body.withUnsafeBytes { JSONSpans.elements(of: list, in: root, text: $0) }
    }
}

struct RejectedBody: Error {
    var status = 400
    var code = "invalid_batch"
    let reason: String

    static func invalid(_ reason: String) -> RejectedBody { RejectedBody(reason: reason) }

    static func tooLarge(_ reason: String) -> RejectedBody {
        RejectedBody(status: 413, code: "batch_too_large", reason: reason)
    }

    static func tooMany(_ events: String, _ limits: GatewayLimits) -> RejectedBody {
        tooLarge("a request may have at most \(limits.batchEvents) \(events); send fewer at a time")
    }
}
