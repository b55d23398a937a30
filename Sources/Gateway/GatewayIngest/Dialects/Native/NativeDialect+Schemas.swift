package import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

extension NativeDialect {
    private static let text: JSONValue = ["type": "string"]
    private static let object: JSONValue = ["type": ["object", "null"]]

    package var schemas: JSONObject {
        HTTPResponse.ingestedSchemas.merging([
            "Event": [
                "type": "object",
                "properties": [
                    "type": ["enum": ["track", "identify", "page", "screen", "group", "alias"]],
                    "messageId": LimitedText.identifier(
                        "Stored once for each user or, without userId, each anonymousId."),
                    "userId": LimitedText.identifier(), "anonymousId": LimitedText.identifier(),
                    "previousId": LimitedText.identifier(
                        "The former user id of an alias; checked like userId, so the two need one token."),
                    "groupId": LimitedText.identifier(), "event": Self.text, "name": Self.text,
                    "timestamp": [
                        "description":
                            "Such as 2026-11-21T08:30:00.000Z, or seconds or milliseconds since 1970; else the time of receipt."
                    ],
                    "properties": Self.object, "traits": Self.object, "context": Self.object,
                ],
            ],
            "Batch": [
                "type": "object", "required": ["batch"],
                "properties": [
                    "batch": [
                        "type": "array", "items": APIOperation.schema("Event"),
                        "maxItems": .integer(Int64(path.limits.batchEvents)),
                    ],
                    "sentAt": ["description": "The device's clock when sending, in a format of timestamp."],
                    "writeKey": Self.text,
                ],
            ],
        ]) { _, own in own }
    }
}
