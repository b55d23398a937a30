#if canImport(ObjectiveC)
    internal import Foundation
#endif

/// Fetches customer tokens from the app's backend, blocking until one is available.
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
    /// Called for a class found by its name, when a client is created and by `anonymize`.
    init()

    /// The token for a request. With nil or an empty string, a request that needs a customer token is not sent.
    ///
    /// Called for every request that needs a token, on a thread of its own, so it may block. Calls do not overlap,
    /// except with a call that has timed out. The SDK does not cache the token.
    func getAuthorizationToken() -> String?
}

/// Fetches customer tokens from the app's backend without blocking a thread.
public protocol AsyncAuthorizationProvider: Sendable {
    /// The token for a request. With nil or an empty string, a request that needs a customer token is not sent.
    ///
    /// Called for every request that needs a token. Calls do not overlap, except with a call that has timed out. After
    /// the time limit the task is cancelled and the request fails. The SDK does not cache the token.
    ///
    /// - Returns: The token.
    /// - Throws: Any error. The request fails without being sent.
    func authorizationToken() async throws -> String?
}

/// A provider that is notified when the customer changes, so that it can clear its cache.
///
/// Blocking and suspending providers may conform. Called off the main thread, before fetches for later requests.
public protocol CustomerObserving {
    /// Called after `identifyCustomer` or `anonymize` has changed the IDs, or `wipeData` removes them.
    ///
    /// - Parameter customerIDs: The new IDs, including `cookie`; empty for `wipeData`.
    func customerChanged(to customerIDs: [String: String])

    /// Called after a server has rejected the last token. The default implementation does nothing.
    func customerTokenRefused()
}

extension CustomerObserving {
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func customerTokenRefused() {}
}
