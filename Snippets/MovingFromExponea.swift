// Configures ExponeaSDK's API with a gateway of Countersign.
import ExponeaCompat

@main
struct MovingFromExponea {
    static func main() {
        Exponea.shared.configure(
            projectToken: "YOUR PROJECT TOKEN",
            authorization: .token("YOUR API KEY"),
            baseUrl: "https://collect.example",
            advancedAuthEnabled: true
        )
    }
}
