internal import CountersignCore

enum OpenAPISchemas {
    static let meanings: [Int: String] = [
        400: "The request is not valid; see the reason", 401: "The credential is missing or invalid",
        403: "This address, user or device may not do that", 404: "Not found",
        410: "The sync token is no longer valid; start over without one",
        413: "Too many bytes or events; send fewer at a time",
        414: "The target is too long",
        415: "The body's encoding is not supported; send it uncompressed or as gzip",
        422: "The request is understood, but cannot be carried out with the current settings or state",
        429: "Too many requests; try again after Retry-After",
        431: "The header is too large", 501: "Not supported",
        503: "Nothing was stored; send the same request again after Retry-After",
    ]

    private static let text: JSONValue = ["type": "string"]

    /// The schemas of errors that the server, rate limits and CORS return before an endpoint runs.
    static let ofEveryRequest: JSONObject = [
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
    ]
}
