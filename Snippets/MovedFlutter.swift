// What a Flutter app's host passes on to the SDK.
import ExponeaCompat

func configure() throws {
    Exponea.shared.authorizationProvider = .className("Runner.ExampleAuthProvider")
    try Exponea.shared.configure(map: [
        "projectToken": "YOUR PROJECT TOKEN",
        "authorizationToken": "YOUR_API_KEY",
        "baseUrl": "https://collect.example",
        "advancedAuthEnabled": true,
    ])
}
