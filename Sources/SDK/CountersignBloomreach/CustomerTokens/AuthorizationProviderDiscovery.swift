internal import Foundation

/// Finds the app's provider class by name. Logs failures with the texts of the vendor's SDK for a platform.
package struct AuthorizationProviderDiscovery {
    package enum Wording: Sendable {
        case ios
        /// Used for a configuration from a map with another platform than iOS, or without a platform on Linux.
        case android
    }

    /// The name that an app gives its class with `@objc`, and the Android SDK's manifest entry.
    static let defaultName = "ExponeaAuthProvider"
    private static let interface = "com.exponea.sdk.services.AuthorizationProvider"

    let wording: Wording
    let log: CountersignLog?

    /// Throws `invalidConfiguration` after logging the reason.
    func find(_ source: CustomerTokenProvider?) throws(CountersignError) -> CustomerTokenProvider {
        let name: String
        switch source?.kind {
        case .blocking, .suspending: return source ?? .className(Self.defaultName)
        case .className(let given): name = given
        case nil: name = Self.defaultName
        }
        guard let found = NSClassFromString(name) else {
            switch wording {
            case .ios: throw rejection("Advanced authorization flag has been enabled without provider", name)
            case .android where source == nil:
                throw rejection("Advanced auth has been enabled but provider has not been found", name)
            case .android: throw rejection("Registered \(name) class has not been found", name)
            }
        }
        if wording == .ios, !(found is NSObject.Type) {
            throw rejection("Class \(Self.defaultName) does not conform to NSObject", name)
        }
        guard let type = found as? any AuthorizationProviderType.Type else {
            switch wording {
            case .ios:
                throw rejection(
                    "Class \(Self.defaultName) does not conform to AuthorizationProviderType", name)
            case .android:
                throw rejection("Registered \(name) class has to implement \(Self.interface)", name)
            }
        }
        return .instance(type.init())
    }

    private func rejection(_ message: String, _ name: String) -> CountersignError {
        log?.write(.warning, message, ["class": name])
        return CountersignError(.invalidConfiguration, message)
    }
}
