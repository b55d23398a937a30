package import CountersignCore
internal import GatewayHTTP

extension BloomreachDialect {
    private static let text: JSONValue = ["type": "string"]
    private static let name: JSONValue = ["type": "string", "pattern": "^[!-~]{1,64}$"]
    private static let seconds: JSONValue = ["type": "number", "minimum": 0, "maximum": 4_000_000_000]

    private static func customer(_ members: [String: JSONValue], required: [JSONValue]) -> JSONValue {
        var properties = members
        properties["customer_ids"] = APIOperation.schema("CustomerIDs")
        return [
            "type": "object", "required": .array(["customer_ids"] + required),
            "properties": .object(properties),
        ]
    }

    package var schemas: [String: JSONValue] {
        [
            "BloomreachFailure": [
                "type": "object", "required": ["success", "error", "errors", "request_id"],
                "properties": [
                    "success": ["const": false], "error": Self.text, "errors": ["type": "array"],
                    "request_id": Self.text, "auth_error": APIOperation.schema("AuthError"),
                ],
            ],
            "BloomreachSuccess": [
                "type": "object", "properties": ["success": ["type": "boolean"]],
            ],
            "CustomerIDs": [
                "type": "object", "minProperties": 1, "maxProperties": 16,
                "properties": ["registered": Self.name, "cookie": Self.name],
                "propertyNames": ["pattern": "^[a-z_]{1,64}$"], "additionalProperties": Self.name,
            ],
            "CustomerRequest": Self.customer([:], required: []),
            "CustomerUpdate": Self.customer(
                ["properties": ["type": "object"], "timestamp": Self.seconds], required: []),
            "CustomerEvent": Self.customer(
                ["event_type": Self.name, "properties": ["type": "object"], "timestamp": Self.seconds],
                required: ["event_type"]),
            "CampaignClick": [
                "type": "object", "required": ["url"],
                "properties": [
                    "url": Self.name, "customer_ids": APIOperation.schema("CustomerIDs"),
                    "properties": ["type": "object"], "timestamp": Self.seconds,
                ],
            ],
            "AttributesRequest": Self.customer(
                [
                    "attributes": [
                        "type": "array", "maxItems": 10,
                        "items": [
                            "type": "object", "required": ["type"],
                            "properties": [
                                "type": ["enum": ["property", "id", "recommendation"]], "property": Self.name,
                            ],
                        ],
                    ]
                ], required: ["attributes"]),
            "InboxFetch": Self.customer(["sync_token": ["type": ["string", "null"]]], required: []),
            "InboxMark": Self.customer(
                [
                    "sync_token": ["type": ["string", "null"]],
                    "message_ids": ["type": "array", "items": Self.name, "maxItems": 100],
                ], required: ["message_ids"]),
            "SelfCheck": [
                "type": "object", "required": ["platform", "push_notification_id"],
                "properties": ["platform": Self.name, "push_notification_id": Self.name],
            ],
        ]
    }
}
