// Code that was written for Transistorsoft's SDK, with another import.
import BackgroundGeolocationCompat

func upload(token: String, refreshToken: String) async throws {
    BGGeo.shared.onAuthorization { event in print(event.isSuccess, event.error ?? "") }
    BGGeo.shared.ready { config in
        config.http.url = "https://app.your.server.com/users/locations"
        config.authorization.strategy = "JWT"
        config.authorization.accessToken = token
        config.authorization.refreshToken = refreshToken
        config.authorization.refreshUrl = "https://auth.your.server.com/tokens"
        config.authorization.refreshPayload = ["refresh_token": "{refreshToken}"]
    }
    try await BGGeo.shared.insert(["coords": ["latitude": 46.05, "longitude": 14.51]])
}

func renew(token: String) {
    // Settings take effect immediately: the next request has the new token.
    BGGeo.shared.config.authorization.accessToken = token
}
