internal import CountersignCore

/// The schemas that the endpoints' descriptions refer to.
enum OpenAPISchemas {
    static let meanings: [Int: String] = [
        400: "The request is not valid; the reason says why", 401: "The credential is missing or not good",
        403: "This address may not do that", 404: "There is no such thing",
        410: "What the request refers to is gone; begin anew",
        413: "More bytes or events than may be; send fewer at a time",
        415: "The body's encoding is not known; send it as it is or as gzip",
        422: "What is asked cannot be done as things are set up",
        429: "Too many requests; come again after Retry-After",
        431: "The header is too large", 501: "Not known",
        503: "Nothing was stored; send the same request again after Retry-After",
    ]

    private static let text: JSONValue = ["type": "string"]
    private static let count: JSONValue = ["type": "integer", "minimum": 0]
    private static let identifier: JSONValue = ["type": ["string", "null"]]

    /// What names an event, an id or a thing of a project.
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

    static let all: [String: JSONValue] = [
        "Failure": [
            "type": "object", "required": ["success", "code"],
            "properties": [
                "success": ["const": false], "code": text, "reason": text, "message": text,
                "request_id": text, "auth_error": APIOperation.schema("AuthError"),
            ],
        ],
        "AuthError": [
            "type": "object", "required": ["error_code", "reason"],
            "properties": [
                "error_code": ["type": "integer"], "reason": text, "message": text, "hint": text,
                "faults": [
                    "type": "array",
                    "items": [
                        "type": "object",
                        "properties": ["error_code": ["type": "integer"], "reason": text],
                    ],
                ],
                "enforcement": ["enum": ["disabled", "optional", "required"]],
                "optional": ["type": "boolean"], "retryable": ["type": "boolean"], "request_id": text,
                "server_time_ms": ["type": "integer"], "clock_skew_seconds": ["type": "number"],
            ],
        ],
        "Stored": [
            "type": "object", "required": ["success", "accepted", "duplicates", "rejected"],
            "properties": [
                "success": [
                    "type": "boolean",
                    "description":
                        "False, with code all_events_rejected, if there were events and none of them was good.",
                ],
                "code": ["const": "all_events_rejected"], "reason": text, "accepted": count,
                "duplicates": count,
                "rejected": ["type": "array", "items": APIOperation.schema("RejectedEvent")],
                "auth_warning": APIOperation.schema("AuthError"),
            ],
        ],
        "RejectedEvent": [
            "type": "object", "required": ["index", "code", "reason"],
            "properties": ["index": count, "code": text, "reason": text],
        ],
        "Event": [
            "type": "object",
            "properties": [
                "type": ["enum": ["track", "identify", "page", "screen", "group", "alias"]],
                "messageId": [
                    "type": "string", "minLength": 1, "maxLength": 128,
                    "description": "Stored once for each user or, without userId, each anonymousId.",
                ],
                "userId": identifier, "anonymousId": identifier,
                "previousId": [
                    "type": "string",
                    "description":
                        "The former user id of an alias; judged like userId, so the two need one token.",
                ],
                "groupId": identifier, "event": text, "name": text,
                "timestamp": ["type": "string", "format": "date-time"],
                "properties": ["type": "object"], "traits": ["type": "object"], "context": ["type": "object"],
            ],
        ],
        "Batch": [
            "type": "object", "required": ["batch"],
            "properties": [
                "batch": ["type": "array", "items": APIOperation.schema("Event"), "maxItems": 1_000],
                "sentAt": ["type": "string", "format": "date-time"], "writeKey": text,
            ],
        ],
        "BrazeData": [
            "type": "object",
            "properties": [
                "api_key": text, "device_id": text, "user_id": text, "time": ["type": "integer"],
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
        "BloomreachFailure": [
            "type": "object", "required": ["success", "error", "errors", "request_id"],
            "properties": [
                "success": ["const": false], "error": text, "errors": ["type": "array"],
                "request_id": text, "auth_error": APIOperation.schema("AuthError"),
            ],
        ],
        "BloomreachSuccess": [
            "type": "object", "properties": ["success": ["type": "boolean"]],
        ],
        "CustomerIDs": [
            "type": "object", "minProperties": 1, "maxProperties": 16,
            "properties": ["registered": name, "cookie": name],
            "propertyNames": ["pattern": "^[a-z_]{1,64}$"], "additionalProperties": name,
        ],
        "CustomerRequest": customer([:], required: []),
        "CustomerUpdate": customer(["properties": ["type": "object"], "timestamp": seconds], required: []),
        "CustomerEvent": customer(
            ["event_type": name, "properties": ["type": "object"], "timestamp": seconds],
            required: ["event_type"]),
        "CampaignClick": [
            "type": "object", "required": ["url"],
            "properties": [
                "url": name, "customer_ids": APIOperation.schema("CustomerIDs"),
                "properties": ["type": "object"], "timestamp": seconds,
            ],
        ],
        "AttributesRequest": customer(
            [
                "attributes": [
                    "type": "array", "maxItems": 10,
                    "items": [
                        "type": "object", "required": ["type"],
                        "properties": [
                            "type": ["enum": ["property", "id", "recommendation"]], "property": name,
                        ],
                    ],
                ]
            ], required: ["attributes"]),
        "InboxFetch": customer(["sync_token": ["type": ["string", "null"]]], required: []),
        "InboxMark": customer(
            [
                "sync_token": ["type": ["string", "null"]],
                "message_ids": ["type": "array", "items": name, "maxItems": 100],
            ], required: ["message_ids"]),
        "OAuthFailure": [
            "type": "object", "required": ["error", "error_description"],
            "properties": ["error": text, "error_description": text],
        ],
        "OAuthTokens": [
            "type": "object", "required": ["access_token", "token_type", "expires_in"],
            "properties": [
                "access_token": text, "token_type": ["const": "Bearer"], "expires_in": count,
                "refresh_token": text, "scope": text,
            ],
        ],
        "DeviceTokens": [
            "type": "object", "required": ["accessToken", "expires", "refreshToken"],
            "properties": ["accessToken": text, "expires": count, "refreshToken": text],
        ],
        "DeviceRefresh": [
            "type": "object", "required": ["refresh_token"], "properties": ["refresh_token": text],
        ],
        "SelfCheck": [
            "type": "object", "required": ["platform", "push_notification_id"],
            "properties": ["platform": name, "push_notification_id": name],
        ],
    ]
}
