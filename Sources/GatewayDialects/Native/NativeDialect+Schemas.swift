package import CountersignCore
internal import GatewayHTTP

extension NativeDialect {
    private static let text: JSONValue = ["type": "string"]
    private static let identifier: JSONValue = ["type": ["string", "null"]]

    package var schemas: [String: JSONValue] {
        HTTPResponse.ingestedSchemas.merging([
            "Event": [
                "type": "object",
                "properties": [
                    "type": ["enum": ["track", "identify", "page", "screen", "group", "alias"]],
                    "messageId": [
                        "type": "string", "minLength": 1, "maxLength": 128,
                        "description": "Stored once for each user or, without userId, each anonymousId.",
                    ],
                    "userId": Self.identifier, "anonymousId": Self.identifier,
                    "previousId": [
                        "type": "string",
                        "description":
                            "The former user id of an alias; judged like userId, so the two need one token.",
                    ],
                    "groupId": Self.identifier, "event": Self.text, "name": Self.text,
                    "timestamp": ["type": "string", "format": "date-time"],
                    "properties": ["type": "object"], "traits": ["type": "object"],
                    "context": ["type": "object"],
                ],
            ],
            "Batch": [
                "type": "object", "required": ["batch"],
                "properties": [
                    "batch": ["type": "array", "items": APIOperation.schema("Event"), "maxItems": 1_000],
                    "sentAt": ["type": "string", "format": "date-time"], "writeKey": Self.text,
                ],
            ],
        ]) { _, own in own }
    }
}
