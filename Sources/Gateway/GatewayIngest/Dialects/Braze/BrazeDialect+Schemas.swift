package import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

extension BrazeDialect {
    private static let text: JSONValue = ["type": ["string", "null"]]
    private static let id: JSONValue = ["type": ["string", "integer", "null"]]

    package var schemas: JSONObject {
        let list: JSONValue = [
            "type": ["array", "null"], "items": ["type": "object"],
            "maxItems": .integer(Int64(path.limits.batchEvents)),
            "description": "The limit applies to events and attributes together.",
        ]
        return RejectedEvent.schemas.merging([
            "BrazeData": [
                "type": "object",
                "properties": [
                    "api_key": Self.text, "device_id": Self.id, "user_id": Self.id,
                    "time": ["type": "number"], "events": list, "attributes": list,
                ],
            ],
            "BrazeStored": [
                "type": "object", "required": ["message", "errors"],
                "properties": [
                    "message": [
                        "type": "string",
                        "description":
                            "`success`; or, if every event was rejected, a sentence and the code all_events_rejected.",
                    ],
                    "code": ["const": "all_events_rejected"],
                    "errors": ["type": "array", "items": APIOperation.schema("RejectedEvent")],
                    "warnings": EventWarning.schema,
                    "auth_warning": APIOperation.schema("AuthError"),
                ],
            ],
        ]) { _, own in own }
    }
}
