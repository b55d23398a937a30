/// A source of customer tokens.
public struct CustomerTokenProvider: Sendable {
    enum Kind: Sendable {
        case blocking(Blocking)
        case suspending(any AsyncAuthorizationProvider)
        case className(String)
    }

    /// `@unchecked Sendable`: calls overlap only after a time-out, see `instance(_:)`.
    struct Blocking: @unchecked Sendable {
        let provider: any AuthorizationProviderType
    }

    let kind: Kind

    /// A provider that may block its thread. Called for one request at a time, but a call that has exceeded
    /// `BloomreachConfiguration.authorizationProviderTimeout` may still run on its thread when the next call begins.
    public static func instance(_ provider: any AuthorizationProviderType) -> CustomerTokenProvider {
        CustomerTokenProvider(kind: .blocking(Blocking(provider: provider)))
    }

    /// A provider that suspends.
    public static func suspending(_ provider: any AsyncAuthorizationProvider) -> CustomerTokenProvider {
        CustomerTokenProvider(kind: .suspending(provider))
    }

    /// A class that is looked up when a client is created and by `anonymize`.
    ///
    /// On Apple platforms the name is the name in `@objc(…)`. Elsewhere it consists of module and class, such as
    /// `Shop.ExampleAuthProvider`, and the class must be at the top level and not private.
    public static func className(_ name: String) -> CustomerTokenProvider {
        CustomerTokenProvider(kind: .className(name))
    }
}
