internal import CountersignCore
internal import CountersignCrypto
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct EventRoutes: Sendable {
    let log: any EventLog
    let index = PseudonymIndex()
    /// The day of the last audit entry about an export after a position, for each caller, app and filter.
    private let auditedDays = Lock<BytewiseDictionary<Int64>>([:])

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/events", .viewer, "List events, newest first", query: Self.filters,
                .list(Self.event), answer: list),
            AdminRoute(
                "GET", "/apps/{app}/events/export", .operator, "Export events, oldest first",
                query: Self.filters + [Export.format, .may("after", .text(longest: 64))],
                .file(Export.mediaTypes), answer: export),
            // Listed after the export, because this path would match `export` as a position.
            AdminRoute(
                "GET", "/apps/{app}/events/{position}", .viewer,
                "Show the event with this position, as lists and deliveries name it", .json(Self.event),
                answer: show),
        ]
    }

    /// A response field: whether retention deleted events after the given position before the export began.
    private static let missed = "X-Countersign-Events-Missed"

    private static let filters: [JSONMember] = [
        .may("user", .text(longest: 512)), .may("message_id", .text(longest: 512)),
        .may("request_id", .text(longest: 128)), .may("type", .choice(EventKind.storedWords)),
        .may("name", .text(longest: 512)), .may("verdict", .choice(VerdictFilter.words)),
        .may("claim", .text(longest: 512)), .may("from_ms", .milliseconds), .may("to_ms", .milliseconds),
    ]

    private static let event = JSONShape.named(
        "Event",
        .all([
            "seq": .count, "message_id": .nullable(.string), "type": .string, "user_id": .nullable(.string),
            "anonymous_id": .nullable(.string), "name": .nullable(.string),
            "timestamp_ms": .integer(.min ... .max), "received_ms": .milliseconds,
            "verdict": .choice(EventProof.Verdict.allCases.map(\.rawValue) + ["unknown"]),
            "code": .nullable(.count), "key_id": .nullable(.string), "enforcement": .nullable(.string),
            "dialect": .nullable(.string), "request_id": .nullable(.string), "token_id": .nullable(.string),
            "body": .any,
        ]).with([.may("position", .string), .may("claims", .any)]))

    private func query(_ call: AdminCall) throws -> EventQuery {
        var query = EventQuery(appID: try call.app().id)
        query.userID = try call.user(of: query.appID, in: index) { last, isEnough in
            try log.users(of: query.appID, after: last, isEnough)
        }
        // The presence of a result would reveal hidden values to a viewer.
        for name in ["message_id", "request_id", "name", "claim"] where call.query(name) != nil {
            try call.checkSeesContent("the filter \(name)")
        }
        query.messageID = call.query("message_id")
        query.requestID = call.query("request_id")
        query.type = call.query("type")
        query.name = call.query("name")
        query.verdict = call.query("verdict").flatMap { VerdictFilter($0) }
        query.claim = try call.query("claim").map {
            guard let claim = ClaimFilter($0) else {
                throw AdminProblem.invalidParameter("claim", ClaimFilter.problem)
            }
            return claim
        }
        query.fromMilliseconds = call.integer("from_ms")
        query.toMilliseconds = call.integer("to_ms")
        if let from = query.fromMilliseconds, let to = query.toMilliseconds, from >= to {
            throw AdminProblem.invalidParameter("from_ms", "must be less than to_ms")
        }
        return query
    }

    /// Searches for a request id first around the time in the id, because events are stored soon after it.
    private func page(of query: EventQuery, before sequence: Int64?, limit: Int) throws -> EventPage {
        if sequence == nil, let query = query.aroundRequest {
            let page = try log.newest(query, before: nil, limit: limit)
            if !page.events.isEmpty || page.next != nil { return page }
        }
        return try log.newest(query, before: sequence, limit: limit)
    }

    private func list(_ call: AdminCall) throws -> HTTPResponse {
        let query = try query(call)
        let mask = try call.userMask()
        let page = try page(of: query, before: try call.cursor()?.number, limit: call.limit)
        let positions = try positions()?.of(query.appID)
        var body = Array(#"{"items":["#.utf8)
        for (index, event) in page.events.enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            mask.event(event, of: query.appID)
                .write(to: &body, position: positions?.text(after: event.sequence))
        }
        let next = page.next.map { PageCursor($0).text }
        body.append(contentsOf: #"],"next":"#.utf8)
        (next.map { .string($0) } ?? JSONValue.null).write(to: &body)
        body.append(UInt8(ascii: "}"))
        return call.answer(json: body)
    }

    /// Shows the event at the position in the path. The position contains the event's sequence number.
    private func show(_ call: AdminCall) throws -> HTTPResponse {
        let app = try call.app().id
        let positions = try log.positions()
        let sequence = try sequence(of: call[1], in: app, positions)
        let event = try log.newest(EventQuery(appID: app), before: sequence + 1, limit: 1).events.first
        guard let event, event.sequence == sequence else {
            throw AdminProblem.notFound("there is no event with this position any more; it was deleted")
        }
        var body: [UInt8] = []
        try call.userMask().event(event, of: app)
            .write(to: &body, position: positions.text(after: sequence, in: app))
        return call.answer(json: body)
    }

    private func noteExport(_ call: AdminCall, _ query: EventQuery) throws {
        var details: JSONObject = [:]
        for name in ["type", "verdict", "claim", "from_ms", "to_ms", "format"] {
            if let text = call.query(name) { details[name] = .string(text) }
        }
        if let user = query.userID {
            let pseudonyms = Pseudonyms(key: try call.directory.pseudonymKey(), appID: query.appID)
            details["user"] = .string(pseudonyms.user(user))
        }
        try call.noteReading("event.export", "", app: query.appID, details)
    }

    private func export(_ call: AdminCall) throws -> HTTPResponse {
        var query = try query(call)
        query.isExport = true
        let mask = try call.userMask()
        let positions = try positions()
        let after = try call.query("after").map { try sequence(of: $0, in: query.appID, positions) }
        let start = after ?? 0
        let filter = JSONValue.object(call.query.filter { $0.key != "after" }.mapValues { .string($0) })
        let caller = "\(call.identity.uniqueName)\(query.appID)\n"
        let key = SHA256.digest(Array(caller.utf8) + filter.bytes).hexadecimal
        let day = call.nowMilliseconds / 86_400_000
        // Clients that follow events export after a position again and again: one entry a day suffices.
        if start == 0 || auditedDays.withLock({ $0[key] }) != day {
            try noteExport(call, query)
            auditedDays.withLock { days in
                if days.count >= 1_000 { days = [:] }
                if start > 0 { days[key] = day }
            }
        }
        // A position with the sequence number 0 was read from an empty log, so a client with it can have missed events.
        let isFromOldest = after == nil || call.query("after") == "start"
        let gap =
            !isFromOldest ? try log.follow(EventQuery(appID: query.appID), after: start, limit: 1).gap : .none
        // With `after`, marks the first event after a gap, which retention may also cause while the export runs. The
        // first page of an export from the oldest event has no gap.
        let isAfterGap = Lock(false)
        let response = Export.list(call, name: "\(query.appID)-events", columns: Self.columns, from: start) {
            [log, query, positions = positions?.of(query.appID)] sequence in
            let page = try log.follow(query, after: sequence, limit: 500)
            let gap = isFromOldest && sequence == 0 ? .none : page.gap
            if after != nil, gap.isOpen { isAfterGap.withLock { $0 = true } }
            let rows = page.events.map { event in
                let event = mask.event(event, of: query.appID)
                var line: [UInt8] = []
                event.write(
                    to: &line, position: positions?.text(after: event.sequence), asLine: true,
                    afterGap: isAfterGap.withLock { isAfterGap in
                        defer { isAfterGap = false }
                        return isAfterGap
                    })
                return Export.Row(
                    cells: [
                        String(event.sequence), event.messageID, event.type, event.userID ?? "",
                        event.anonymousID ?? "", event.name ?? "", String(event.timestampMilliseconds),
                        String(event.receivedMilliseconds), event.verdict,
                        (event.proof?.code).map(String.init) ?? "", event.proof?.keyID ?? "",
                        event.proof?.enforcement ?? "", event.proof?.dialect ?? "",
                        event.proof?.requestID ?? "", event.proof?.tokenID ?? "", event.proof?.claims ?? "",
                        String(decoding: event.body, as: UTF8.self),
                    ], line: line)
            }
            return (rows, page.hasMore ? page.scannedThrough : nil)
        }
        return after == nil ? response : response.with(Self.missed, String(gap.isOpen))
    }

    /// Nil for a data directory on which no gateway of this version has run.
    private func positions() throws -> EventPositions? {
        do throws(GatewayError) {
            return try log.positions()
        } catch {
            guard error.code == .conflict || error.code == .notFound else { throw error }
            return nil
        }
    }

    private func sequence(of text: String, in appID: String, _ positions: EventPositions?) throws -> Int64 {
        guard text != "start" else { return 0 }
        // Repeats the read to throw its error.
        let positions = try positions ?? log.positions()
        do throws(EventPositions.Fault) {
            return try positions.sequence(of: text, in: appID)
        } catch {
            throw AdminProblem(422, error.rawValue, error.reason)
        }
    }

    private static let columns = [
        "seq", "message_id", "type", "user_id", "anonymous_id", "name", "timestamp_ms", "received_ms",
        "verdict", "code", "key_id", "enforcement", "dialect", "request_id", "token_id", "claims", "body",
    ]
}
