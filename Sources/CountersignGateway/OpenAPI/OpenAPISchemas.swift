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
                "success": ["const": true], "accepted": count, "duplicates": count,
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
                "messageId": ["type": "string", "minLength": 1, "maxLength": 128],
                "userId": identifier, "anonymousId": identifier, "event": text, "name": text,
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
                "message": ["const": "success"],
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
        "CustomerRequest": [
            "type": "object", "required": ["customer_ids"],
            "properties": [
                "customer_ids": [
                    "type": "object", "minProperties": 1, "additionalProperties": identifier,
                ],
                "properties": ["type": "object"], "timestamp": ["type": "number"], "age": ["type": "number"],
                "event_type": text,
            ],
        ],
    ]
}
