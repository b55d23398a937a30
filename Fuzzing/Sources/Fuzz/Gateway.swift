import Foundation

@testable import CountersignGateway
@testable import CountersignJOSE
@testable import CountersignJSON
@testable import CountersignSQLite
@testable import GatewayAdmin
@testable import GatewayDelivery
@testable import GatewayHTTP
@testable import GatewayIngest
@testable import GatewayModel
@testable import GatewayStorage

/// Fuzzes requests of clients and operators to the gateway.
func fuzzGateway(_ kind: UInt8, _ bytes: [UInt8]) {
    switch kind {
    case 0: fuzzNative(bytes, isSingle: false)
    case 1: fuzzNative(bytes, isSingle: true)
    case 2: fuzzBraze(bytes)
    case 3: fuzzLocations(bytes)
    case 4: fuzzForm(bytes)
    case 5: fuzzAdmin(bytes)
    case 17: fuzzReading(bytes)
    case 18: fuzzParameters(bytes)
    case 19: fuzzHeaders(bytes)
    case 20: fuzzPastedKeys(bytes)
    case 21: fuzzHead(bytes)
    case 22: fuzzChunks(bytes)
    case 23: fuzzConnection(bytes)
    case 16...: fuzzCustomers(bytes)
    case 6: fuzzGzip(bytes)
    default: fuzzQueries(bytes)
    }
}

private let limits = GatewayLimits()
private let parsers = ParserPool(limits: limits)

private func request(_ bytes: [UInt8]) -> HTTPRequest {
    HTTPRequest(method: "POST", path: "/", receivedMilliseconds: 1_800_000_000_000, body: bytes)
}

/// Checks that each event is a complete JSON value in the body.
private func check(_ events: [EventBatch.Event], in body: [UInt8]) {
    for event in events {
        precondition(!event.messageID.isEmpty && event.userID != "" && event.anonymousID != "")
        let json = Array(body[event.json])
        precondition((try? StrictJSONParser(maximumBytes: 1 << 20).parse(bytes: json) { _ in }) != nil)
    }
}

private func fuzzNative(_ bytes: [UInt8], isSingle: Bool) {
    let request = request(bytes)
    guard
        let decoder = try? parsers.parseEvents(
            request, isolate: { if !isSingle { $0.isolateElements(of: ["batch"], times: ["timestamp"]) } },
            { root, events throws(RejectedBody) in
                try NativeDecoder(root, single: isSingle ? .track : nil, events, isKnown: { _ in true })
            })
    else { return }
    let contents = decoder.events
    check(contents.events, in: request.body)
    for user in contents.events.compactMap(\.userID) {
        precondition(contents.userIDs.ids.contains { $0.utf8.elementsEqual(user.utf8) }, "not admitted")
    }
}

private func fuzzBraze(_ bytes: [UInt8]) {
    let request = request(bytes)
    guard
        let decoder = try? parsers.parseEvents(
            request, isolate: { $0.isolateElements(of: ["events", "attributes"], times: ["time"]) },
            { root, events throws(RejectedBody) in try BrazeDecoder(root, events, isKnown: { _ in true }) })
    else { return }
    let contents = decoder.events
    check(contents.events, in: request.body)
    for user in contents.events.compactMap(\.userID) {
        precondition(contents.userIDs.ids.contains { $0.utf8.elementsEqual(user.utf8) }, "not admitted")
    }
}

private func fuzzLocations(_ bytes: [UInt8]) {
    let request = request(bytes)
    guard
        let decoder = try? parsers.parseEvents(
            request, isolate: { $0.isolateLocations() },
            { root, events throws(RejectedBody) in
                try GeolocationDecoder(root, user: "user-1", events)
            })
    else { return }
    check(decoder.events.events, in: decoder.body)
    precondition(decoder.body.count <= 2 * limits.bodyBytes)
}

private func fuzzForm(_ bytes: [UInt8]) {
    guard let form = try? OAuthForm(body: bytes) else { return }
    for name in ["grant_type", "scope", "client_id"] {
        precondition(form[name]?.utf8.allSatisfy { $0 < 0x80 } ?? true)
    }
}

private func fuzzAdmin(_ bytes: [UInt8]) {
    let shape = JSONShape.object([
        .must("name", .text(longest: 64)), .may("mode", .choice(["a", "b"])), .may("list", .list(.count)),
        .may("map", .map(.any)),
    ])
    guard let body = try? AdminBody(bytes, shape) else { return }
    let name: String? = body.value("name")
    let mode: String? = body.value("mode")
    precondition((name ?? "").utf8.count <= 64)
    _ = (mode, body.members.count)
}

/// Fuzzes query parameters, cursors and sync tokens.
private func fuzzQueries(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    _ = QueryString.value(of: "a", in: text)
    if let position = PageCursor(text) { precondition(PageCursor(position.text) == position) }
    if let token = InboxSyncToken(text) { precondition(InboxSyncToken(token.text) == token) }
}

/// Fuzzes requests of the pull API. The first line is the query, the rest the body.
private func fuzzReading(_ bytes: [UInt8]) {
    let parts = bytes.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
    let query = String(decoding: parts[0], as: UTF8.self)
    let request = HTTPRequest(
        method: "POST", path: "/v1/apps/a/consumers/b/poll", query: query,
        receivedMilliseconds: 1_800_000_000_000, body: parts.count > 1 ? Array(parts[1]) : [])
    guard let call = try? FollowingCall(request, ["a", "b"], parsers) else { return }
    try? call.checkParameters(["verdict", "type", "name", "user", "limit"])
    try? call.checkMembers("limit", "wait_seconds", "filter", "from")
    _ = (try? call.filterOfQuery(), try? call.filterOfBody(), try? call.number("limit", 1...100, else: 1))
    let longest = FollowingCall.longestText
    precondition(((try? call.member("from", longest: longest)) ?? nil)?.utf8.count ?? 0 <= longest)
}

/// Fuzzes query parameters against the declaration of an admin route.
private func fuzzParameters(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    let operation = AdminRoute(
        "GET", "/events", .viewer, "Fuzzed",
        query: [
            .may("name", .text(longest: 64)), .may("number", .integer(1...500)),
            .may("mode", .choice(["a", "b"])),
        ], .list(.any)
    ) { _ in preconditionFailure("not called") }.operation
    _ = try? operation.parameters(of: text)
}

/// Fuzzes header fields, one in each line, of each dialect and the admin API.
private func fuzzHeaders(_ bytes: [UInt8]) {
    let names = [
        "authorization", "cookie", "content-type", "x-forwarded-for", "origin", "accept", "accept-encoding",
        "x-countersign-signature", "x-write-key", "if-match", "host", "user-agent", "x-request-id",
    ]
    let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
    let fields = zip(names, lines).map { ($0, String(decoding: $1, as: UTF8.self)) }
    let request = HTTPRequest(
        method: "POST", path: "/v1/batch", fields: HeaderBlock(fields.map { (name: $0.0, value: $0.1) }),
        receivedMilliseconds: 1_800_000_000_000)
    _ = (
        try? Credentials(request), FollowingCall.token(of: request),
        try? FollowingCall(request, ["a"], parsers)
    )
    let admin = AdminRequest(request, [])
    _ = (
        admin.isJSON, admin.sessionToken(isSecure: true), admin.bearerToken,
        admin.isOwnOrigin(publicURL: "https://a.example")
    )
    _ = ClientAddress.resolve(
        peer: "127.0.0.1", forwarded: fields.filter { $0.0 == "x-forwarded-for" }.map(\.1),
        proxies: [AddressRange("127.0.0.0/8")].compactMap { $0 })
    _ = CORS(
        requestHeaders: [], methods: { _ in ["POST"] }, origins: { _ in ["https://a.example"] },
        originsOfAllApps: { ["https://b.example"] }
    ).preflight(request)
    if let token = request.header("authorization") { _ = try? CompactJWS(parsing: token) }
}

/// Fuzzes public keys in any form that an operator may paste.
private func fuzzPastedKeys(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    _ = (
        try? PastedKeys(text: text), try? PublicKey(text: text), try? JWKSet(json: text),
        try? SigningKey(pem: text)
    )
}

/// Fuzzes the customer ids of successive requests, which create and merge customers. Other customers must not change.
private func fuzzCustomers(_ bytes: [UInt8]) {
    _ = try? StrictJSONParser(maximumBytes: 65_536).parse(bytes: bytes) { root in
        guard root.kind == .array else { return }
        do {
            try applyChanges(of: root)
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

private func applyChanges(of root: JSONNode) throws {
    let connection = try SQLiteConnection(path: ":memory:")
    try connection.migrate(EventLogSchema.migrations)
    let writer = CustomerWriter(connection: connection, appID: "a")
    var known: [String: String] = [:]
    for (index, element) in root.elements.enumerated().prefix(24) {
        guard let ids = try? CustomerIdentifier.all(in: element, named: "customer_ids"), !ids.isEmpty else {
            continue
        }
        var change = CustomerChange(identifiers: ids, atMilliseconds: Int64(index))
        change.properties = [("p", Array("\(index)".utf8))]
        change.readMessageIDs = ["\(index % 3)"]
        try writer.apply(change, receivedMilliseconds: Int64(index))
        let own = ids.first(where: \.isHard).map { Data($0.value.utf8).base64EncodedString() }
        try check(connection)
        let found = try properties(connection)
        for (id, property) in known where id != own {
            precondition(found[id] == property, "a request changed another identified customer")
        }
        known = found
    }
}

/// The properties of customers with a registered id, by that id.
private func properties(_ connection: SQLiteConnection) throws -> [String: String] {
    let rows = try connection.all(
        """
        SELECT own.value, property.value FROM customer_identifier AS own
        JOIN customer_property AS property ON property.customer_id = own.customer_id
        WHERE own.name = 'registered'
        """
    ) { (Data($0.text(0).utf8).base64EncodedString(), $0.text(1)) }
    return Dictionary(uniqueKeysWithValues: rows)
}

private func check(_ connection: SQLiteConnection) throws {
    func expect(_ sql: String, _ number: Int64, _ fault: String) throws {
        let found = try connection.first(sql) { $0.int64(0) } ?? 0
        precondition(found == number, fault)
    }
    try expect(
        "SELECT count(*) FROM (SELECT 1 FROM customer_identifier WHERE name = 'registered' "
            + "GROUP BY customer_id HAVING count(*) > 1)", 0, "a customer with two hard ids")
    try expect(
        "SELECT count(*) FROM customer_identifier WHERE customer_id NOT IN (SELECT id FROM customer)", 0,
        "an id without a customer")
    let pair = "coalesce(sum(length(CAST(name AS BLOB)) + length(CAST(value AS BLOB))), 0)"
    let kept = """
        (SELECT \(pair) FROM customer_identifier) + (SELECT \(pair) FROM customer_property)
        + (SELECT coalesce(sum(length(CAST(message_id AS BLOB))), 0) FROM inbox_read)
        """
    try expect("SELECT coalesce((SELECT sum(bytes) FROM customer), 0) - (\(kept))", 0, "bytes of customers")
    try expect(
        "SELECT coalesce((SELECT sum(customer_bytes) FROM app_usage), 0) - (\(kept))", 0, "bytes of apps")
}

private func fuzzGzip(_ bytes: [UInt8]) {
    guard let size = try? Gunzip.size(of: bytes, limits: limits) else { return }
    guard let body = try? Gunzip.decompress(bytes, size: size, limits: limits) else { return }
    precondition(body.count == size, "decompressed to another size")
}
