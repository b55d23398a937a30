// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The calls of `configure` in the vendor's documentation of the iOS SDK, unchanged.
import ExponeaCompat

public enum Configuring {
    public static func withAPIKey() {
        Exponea.shared.configure(
            projectToken: "YOUR PROJECT TOKEN",
            authorization: .token("YOUR API KEY")
        )
    }

    public static func withAccessToken() {
        Exponea.shared.configure(
            projectToken: "YOUR PROJECT TOKEN",
            authorization: .token("YOUR ACCESS TOKEN")
        )
    }

    public static func withCustomerTokens() {
        Exponea.shared.configure(
            projectToken: "YOUR PROJECT TOKEN",
            authorization: .token("YOUR API KEY"),
            advancedAuthEnabled: true
        )
    }

    public static func withCustomerTokensAndAccessToken() {
        Exponea.shared.configure(
            projectToken: "YOUR PROJECT TOKEN",
            authorization: .token("YOUR ACCESS TOKEN"),
            advancedAuthEnabled: true
        )
    }
}
