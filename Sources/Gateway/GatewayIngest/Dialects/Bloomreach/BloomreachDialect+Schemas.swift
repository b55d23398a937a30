package import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

extension BloomreachDialect {
    private static let text: JSONValue = ["type": "string"]
    private static let timestamp: JSONValue = [
        "description":
            "Seconds since 1970, or a date and time such as 2026-11-21T08:30:00Z; else the time of receipt."
    ]
    private static let properties: JSONValue = [
        "type": ["object", "null"], "propertyNames": LimitedText.schema(longest: 256),
    ]

    private static func customer(_ members: JSONObject, required: [JSONValue]) -> JSONValue {
        var properties = members
        properties["customer_ids"] = ["$ref": "#/components/schemas/CustomerIDs", "minProperties": 1]
        return [
            "type": "object", "required": .array(["customer_ids"] + required),
            "properties": .object(properties),
        ]
    }

    private static func record(_ members: JSONObject = [:]) -> JSONObject {
        let shared: JSONObject = [
            "properties": properties, "timestamp": timestamp,
            "age": [
                "description": "Seconds since the event, instead of timestamp."
            ],
            "message_id": LimitedText.identifier(),
        ]
        return members.merging(shared) { own, _ in own }
    }

    package var schemas: JSONObject {
        RejectedEvent.schemas.merging([
            "BloomreachFailure": [
                "type": "object", "required": ["success", "error", "errors", "request_id"],
                "properties": [
                    "success": ["const": false], "error": Self.text, "errors": ["type": "array"],
                    "request_id": Self.text, "auth_error": APIOperation.schema("AuthError"),
                ],
            ],
            "BloomreachSuccess": [
                "type": "object",
                "properties": ["success": ["type": "boolean"], "warnings": EventWarning.schema],
            ],
            "CustomerIDs": [
                "type": "object", "maxProperties": .integer(Int64(CustomerIdentifier.maximum)),
                "propertyNames": LimitedText.schema(longest: CustomerIdentifier.longestName),
                "additionalProperties": LimitedText.identifier(),
                "description": "Ids by their names, such as registered and cookie.",
            ],
            "CustomerRequest": [
                "type": "object", "properties": ["customer_ids": APIOperation.schema("CustomerIDs")],
            ],
            "CustomerUpdate": Self.customer(Self.record(), required: []),
            "CustomerEvent": Self.customer(
                Self.record(["event_type": LimitedText.schema(longest: BloomreachTracking.longestType)]),
                required: ["event_type"]),
            "CampaignClick": [
                "type": "object", "required": ["url"],
                "properties": .object(
                    Self.record([
                        "url": LimitedText.schema(longest: BloomreachTracking.longestURL),
                        "customer_ids": APIOperation.schema("CustomerIDs"),
                    ])),
            ],
            "AttributesRequest": Self.customer(
                [
                    "attributes": [
                        "type": "array", "maxItems": .integer(Int64(BloomreachAttributes.maximum)),
                        "items": [
                            "type": "object", "required": ["type"],
                            "properties": [
                                "type": ["enum": ["property", "id"]],
                                "property": Self.text, "id": Self.text,
                            ],
                        ],
                    ]
                ], required: ["attributes"]),
            "InboxFetch": Self.customer(["sync_token": ["type": ["string", "null"]]], required: []),
            "InboxMark": Self.customer(
                [
                    "sync_token": ["type": ["string", "null"]],
                    "message_ids": [
                        "type": "array", "items": Self.text,
                        "maxItems": .integer(Int64(BloomreachInbox.maximumReads)),
                    ],
                ], required: ["message_ids"]),
            "SelfCheck": [
                "type": "object", "required": ["platform", "push_notification_id"],
                "properties": [
                    "platform": LimitedText.schema(longest: BloomreachSelfCheck.longestText),
                    "push_notification_id": LimitedText.schema(longest: BloomreachSelfCheck.longestText),
                    "application_id": Self.text, "customer_ids": APIOperation.schema("CustomerIDs"),
                ],
            ],
        ]) { _, own in own }
    }
}
