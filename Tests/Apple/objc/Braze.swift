// swift-format-ignore-file
// The declarations of BrazeCompat's Swift class `Braze` that the Objective-C façade (Braze+ObjectiveC.swift) uses.
// scripts/apple-check.sh checks the façade, without `@objc`, against the real declarations.
public final class Braze: Sendable {
    public final class Configuration {
        public final class Api {
            public var key = ""
            public var endpoint = ""
            public var sdkAuthentication = false
        }

        public let api = Api()
        public var sessionTimeout = 0.0

        public init(apiKey: String, endpoint: String) {}
    }

    public struct SDKAuthenticationError: Sendable {
        public let code: Int
        public let reason: String?
        public let userId: String?
        public let signature: String
        public let optional: Bool
    }

    @MainActor public weak var sdkAuthDelegate: (any BrazeSDKAuthDelegate)?

    public var enabled: Bool {
        get { true }
        set {}
    }

    public init(configuration: Configuration) {}
    public func changeUser(userId: String, sdkAuthSignature: String? = nil) {}
    public func set(sdkAuthenticationSignature: String) {}
    public func logCustomEvent(name: String, properties: [String: Any]? = nil) {}
    public func logPurchase(productId: String, currency: String, price: Double) {}
    public func requestImmediateDataFlush() {}
    public func wipeData() {}
}

@MainActor public protocol BrazeSDKAuthDelegate: AnyObject {
    func braze(_ braze: Braze, sdkAuthenticationFailedWithError error: Braze.SDKAuthenticationError)
}
