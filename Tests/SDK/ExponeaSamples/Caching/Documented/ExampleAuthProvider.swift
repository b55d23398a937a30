// As printed in the documentation of the vendor, but for the import.
// swift-format-ignore-file
import ExponeaCompat

// The documentation leaves the body of `loadJwtToken` out ("..."), and its result type is `String?` there, which does not
// fit the pair that the result is assigned to. Both are filled in here; the rest is unchanged.
@objc(ExponeaAuthProvider)
public class ExampleAuthProvider: NSObject, AuthorizationProviderType {
    required public override init() { }

    private var tokenCache: String?
    private var lifetime: Double?

    public func getAuthorizationToken() -> String? {
        if tokenCache == nil || hasExpired(lifetime) {
            (tokenCache, lifetime) = loadJwtToken()
        }
        return tokenCache
    }

    private func loadJwtToken() -> (String?, Double?) {
        yourBackend.load()
    }
}
