// Upload locations with an access token that the SDK refreshes.
import CountersignLocations
import Foundation

// snippet.show
func uploadALocation(server: String, accessToken: String, refreshToken: String) async throws {
    var configuration = LocationConfiguration()
    configuration.http.url = server + "/api/locations"
    configuration.authorization.accessToken = accessToken
    configuration.authorization.refreshToken = refreshToken
    configuration.authorization.refreshUrl = server + "/api/refresh_token"
    configuration.authorization.refreshPayload = ["refresh_token": "{refreshToken}"]
    configuration.onAuthorization = { event in print("refresh: \(event)") }
    let client = try LocationClient(configuration: configuration)

    try await client.record(Location(latitude: 46.05, longitude: 14.51, timestamp: Date()))
    print("uploaded \(try await client.sync().count)")
    if await client.authorizationState.kind == .reauthenticationRequired {
        print("the user must log in again")
    }
}
// snippet.hide

let environment = ProcessInfo.processInfo.environment
if let accessToken = environment["ACCESS_TOKEN"], let refreshToken = environment["REFRESH_TOKEN"] {
    try await uploadALocation(
        server: "http://127.0.0.1:8787", accessToken: accessToken, refreshToken: refreshToken)
}
