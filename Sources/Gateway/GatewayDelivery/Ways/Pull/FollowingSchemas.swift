internal import CountersignCore
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel

/// The OpenAPI description of reading events.
enum FollowingSchemas {
    private static let token = APIOperation.SecurityScheme(
        "readerToken", ["type": "http", "scheme": "bearer"])
    private static let text: JSONValue = ["type": "string"]
    /// A value in an event filter.
    private static let limitedText = LimitedText.schema(longest: FollowingCall.longestText)
    private static let optionalText: JSONValue = .object(["anyOf": .array([limitedText, ["type": "null"]])])
    private static let position = LimitedText.schema(longest: FollowingCall.longestPosition)
    private static let number: JSONValue = ["type": "integer"]
    private static let kind: JSONValue = ["enum": .array(EventKind.storedWords.map { .string($0) })]
    private static let flag: JSONValue = ["type": "boolean"]

    private static let consumerName: JSONValue = ["type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"]

    private static func optional(_ type: String) -> JSONValue { ["type": [.string(type), "null"]] }

    private static func range(_ least: Int, _ most: Int, _ usual: Int) -> JSONValue {
        [
            "type": "integer", "minimum": .integer(Int64(least)), "maximum": .integer(Int64(most)),
            "default": .integer(Int64(usual)),
        ]
    }

    private static func object(_ required: [String], _ properties: JSONObject) -> JSONValue {
        [
            "type": "object", "required": .array(required.map { .string($0) }),
            "properties": .object(properties),
        ]
    }

    private static let start: JSONObject = [
        "from": ["enum": ["start", "end"]],
        "time_ms": ["type": "integer", "minimum": 0, "maximum": .integer(Int64(FollowingCall.latest))],
        "position": position,
    ]

    private static func operation(
        _ summary: String, query: [(name: String, isRequired: Bool, schema: JSONValue)] = [],
        body: JSONValue? = nil, status: Int = 200, answer: JSONValue, rejections: [Int] = []
    ) -> APIOperation {
        var operation = APIOperation(
            summary: summary, security: [[token]], query: query, body: body, status: status, answer: answer,
            rejections: [403, 404] + rejections)
        operation.parts = ["name": consumerName]
        return operation
    }

    static let events = operation(
        "Read events after a position, oldest first",
        query: [
            ("after", false, position), ("limit", false, range(1, 1_000, 100)),
            ("wait", false, range(0, 60, 0)),
            ("verdict", false, ["enum": .array(VerdictFilter.words.map { .string($0) })]),
            ("type", false, kind), ("name", false, limitedText), ("user", false, limitedText),
            ("claim", false, limitedText),
        ], answer: APIOperation.schema("EventPage"), rejections: [422])
    static let list = operation(
        "List the consumers of an app",
        answer: object(["items"], ["items": ["type": "array", "items": consumer]]))
    static let create = operation(
        "Create a consumer",
        body: object(
            ["name"],
            start.merging([
                "name": consumerName, "filter": filter,
                "partitions": range(1, EventConsumerSettings.mostPartitions, 1), "holds_retention": flag,
                "hold_days": range(1, EventConsumerSettings.longestHold, EventConsumerSettings.usualHold),
            ]) { own, _ in own }), status: 201, answer: consumer, rejections: [409, 422])
    static let show = operation("Describe a consumer and its lag", answer: consumer)
    static let delete = operation("Delete a consumer", answer: ["type": "object"])
    static let poll = operation(
        "Lease the next events of a consumer",
        body: object(
            [], ["limit": range(1, 1_000, 100), "wait": range(0, 60, 0), "lease_seconds": range(5, 600, 60)]),
        answer: APIOperation.schema("EventLease"))
    static let acknowledge = operation(
        "Confirm leased events, all or up to a position",
        body: object(["lease"], ["lease": position, "position": position]),
        answer: object(["position"], ["position": text]), rejections: [409, 422])
    static let release = operation(
        "Release a lease", body: object(["lease"], ["lease": position]), answer: ["type": "object"],
        rejections: [409])
    static let seek = operation(
        "Move a consumer and end its leases", body: object([], start), answer: consumer, rejections: [422])

    private static let consumer = APIOperation.schema("EventConsumer")
    private static let filter: JSONValue = [
        "type": "object",
        "properties": [
            "verdict": optional("string"), "type": ["anyOf": [kind, ["type": "null"]]],
            "name": optionalText, "user": optionalText, "claim": optionalText,
        ],
    ]
    private static let eventList: JSONValue = [
        "type": "array", "items": APIOperation.schema("FollowedEvent"),
    ]

    static let all: JSONObject = [
        "FollowedEvent": event, "EventPage": page, "EventLease": lease, "EventConsumer": described,
    ]

    private static let event: JSONValue = {
        let verdicts = EventProof.Verdict.allCases.map(\.rawValue) + ["unknown"]
        var properties: JSONObject = [
            "verdict": ["enum": .array(verdicts.map { .string($0) })], "code": optional("integer"),
            "body": .object([:]),
            "claims": [
                "type": "object", "additionalProperties": ["type": ["string", "number", "boolean"]],
            ],
        ]
        for name in ["position", "message_id", "type"] { properties[name] = text }
        for name in ["seq", "timestamp_ms", "received_ms"] { properties[name] = number }
        for name in [
            "user_id", "anonymous_id", "name", "key_id", "enforcement", "dialect", "request_id", "token_id",
        ] { properties[name] = optional("string") }
        return object(
            ["position", "seq", "message_id", "type", "timestamp_ms", "received_ms", "verdict", "body"],
            properties)
    }()

    private static let page = object(
        ["events", "next", "has_more", "events_missed"],
        ["events": eventList, "next": text, "has_more": flag, "events_missed": flag])

    private static let lease: JSONValue = {
        let members = ["id", "partition", "expires_ms", "position"]
        let given = object(
            members, ["id": text, "partition": number, "expires_ms": number, "position": text])
        let either: JSONValue = .array([given, .object(["type": "null"])])
        return object(
            ["events", "lease", "has_more", "events_missed"],
            [
                "events": eventList, "has_more": flag, "events_missed": flag,
                "lease": .object(["anyOf": either]),
            ])
    }()

    private static let described: JSONValue = {
        let partition = object(
            ["partition", "position", "leased_until_ms"],
            ["partition": number, "position": text, "leased_until_ms": optional("integer")])
        let properties: JSONObject = [
            "name": text, "created_ms": number, "filter": filter, "holds_retention": flag,
            "hold_days": optional("integer"), "lag_events": number, "oldest_unread_ms": optional("integer"),
            "events_missed": flag, "partitions": .object(["type": "array", "items": partition]),
        ]
        return object(properties.keys.sorted(), properties)
    }()
}
