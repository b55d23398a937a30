// Let the SDK refresh access tokens: configuration, responses with other members, and the app's own requests.
import CountersignLocations
import Foundation

func configure(token: String, refreshToken: String) async throws {
    var configuration = LocationConfiguration()
    configuration.http.url = "https://app.your.server.com/users/locations"
    configuration.authorization.accessToken = token
    configuration.authorization.refreshToken = refreshToken
    configuration.authorization.refreshUrl = "https://auth.your.server.com/tokens"
    configuration.authorization.refreshPayload = [
        "grant_type": "refresh_token", "refresh_token": "{refreshToken}",
    ]
    let client = try LocationClient(configuration: configuration)
    try await client.record(Location(latitude: 46.05, longitude: 14.51, timestamp: Date()))
}

func map(configuration: inout LocationConfiguration) {
    configuration.authorization.responseMapping = ["accessToken": "$.data.sessions[0].jwt"]
}

func ask(client: LocationClient) async throws {
    let token = try await client.accessToken()
    // After a 401:
    let next = try await client.accessToken(replacing: token)
    print(next == token)
}
