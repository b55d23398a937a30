// As printed in the documentation of the vendor, but for the import.
// swift-format-ignore-file
import ExponeaCompat

@objc(ExponeaAuthProvider)
public class ExampleAuthProvider: NSObject, AuthorizationProviderType {
    required public override init() { }
    public func getAuthorizationToken() -> String? {
        "YOUR JWT TOKEN"
    }
}
