package import CountersignCore

extension OAuthEndpoints {
    private static let text: JSONValue = ["type": "string"]
    private static let count: JSONValue = ["type": "integer", "minimum": 0]

    package var schemas: JSONObject {
        OAuthError.schemas.merging([
            "OAuthTokens": [
                "type": "object", "required": ["access_token", "token_type", "expires_in"],
                "properties": [
                    "access_token": Self.text, "token_type": ["const": "Bearer"], "expires_in": Self.count,
                    "refresh_token": Self.text, "scope": Self.text,
                ],
            ]
        ]) { _, own in own }
    }
}
