package import CountersignCore
internal import GatewayHTTP

extension GeolocationDialect {
    private static let text: JSONValue = ["type": "string"]
    private static let count: JSONValue = ["type": "integer", "minimum": 0]

    package var schemas: JSONObject {
        HTTPResponse.ingestedSchemas.merging(OAuthError.schemas) { own, _ in own }
            .merging([
                "DeviceTokens": [
                    "type": "object", "required": ["accessToken", "expires", "refreshToken"],
                    "properties": [
                        "accessToken": Self.text, "expires": Self.count, "refreshToken": Self.text,
                    ],
                ],
                "DeviceRefresh": [
                    "type": "object",
                    "anyOf": [["required": ["refresh_token"]], ["required": ["refreshToken"]]],
                    "properties": ["refresh_token": Self.text, "refreshToken": Self.text],
                ],
            ]) { _, own in own }
    }
}
