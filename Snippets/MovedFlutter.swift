// Configure the SDK from the host of a Flutter app.
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
