package import CountersignCore
internal import GatewayHTTP

extension BrazeDialect {
    private static let text: JSONValue = ["type": "string"]

    package var schemas: [String: JSONValue] {
        RejectedEvent.schemas.merging([
            "BrazeData": [
                "type": "object",
                "properties": [
                    "api_key": Self.text, "device_id": Self.text, "user_id": Self.text,
                    "time": ["type": "integer"],
                    "events": ["type": "array", "items": ["type": "object"], "maxItems": 500],
                    "attributes": ["type": "array", "items": ["type": "object"], "maxItems": 500],
                ],
            ],
            "BrazeStored": [
                "type": "object", "required": ["message", "errors"],
                "properties": [
                    "message": [
                        "type": "string",
                        "description":
                            "`success`, or a sentence, with code all_events_rejected, if no event was good.",
                    ],
                    "code": ["const": "all_events_rejected"],
                    "errors": ["type": "array", "items": APIOperation.schema("RejectedEvent")],
                    "auth_warning": APIOperation.schema("AuthError"),
                ],
            ],
        ]) { _, own in own }
    }
}
