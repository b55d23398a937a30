#if canImport(ObjectiveC)
    internal import Foundation
#endif

/// Gets customer tokens from the app's backend, blocking until it has one.
///
/// ```swift
/// @objc(ExponeaAuthProvider)
/// public class ExampleAuthProvider: NSObject, AuthorizationProviderType {
///     required public override init() { }
///     public func getAuthorizationToken() -> String? {
///         "YOUR JWT TOKEN"
///     }
/// }
/// ```
#if canImport(ObjectiveC)
    @objc
#endif
public protocol AuthorizationProviderType: AnyObject {
    /// Makes a provider. Called when the SDK is configured, and again when the customer is anonymized.
    init()

    /// The customer token for a request that is about to be sent; nil or an empty text if there is none, and then the
    /// request fails without being sent.
    ///
    /// Called for every request that needs a token, on its own thread and never by two threads at a time, so it may
    /// block. The SDK keeps nothing of what it returns.
    func getAuthorizationToken() -> String?
}

/// Gets customer tokens from the app's backend without blocking a thread.
public protocol AsyncAuthorizationProvider: Sendable {
    /// The customer token for a request that is about to be sent; nil or an empty text if there is none.
    ///
    /// Called for every request that needs a token, never twice at the same time. When it takes too long its task is
    /// cancelled and the request fails. The SDK keeps nothing of what it returns.
    ///
    /// - Returns: The token.
    /// - Throws: Anything; the request fails without being sent, as for nil.
    func authorizationToken() async throws -> String?
}

/// A provider that wants to know when another customer uses the app, so that it drops what it has cached.
///
/// Either kind of provider may conform to it. Called where the token is asked for, and before the next token is.
public protocol CustomerObserving {
    /// `identifyCustomer` or `anonymize` has changed the ids.
    ///
    /// - Parameter customerIDs: The ids from now on, `cookie` among them.
    func customerChanged(to customerIDs: [String: String])

    /// A server has refused the token that was given last. By default nothing is done.
    func customerTokenRefused()
}

extension CustomerObserving {
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func customerTokenRefused() {}
}
