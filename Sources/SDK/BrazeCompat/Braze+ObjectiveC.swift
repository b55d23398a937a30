// Wrappers with the vendor's names for Objective-C.
#if canImport(ObjectiveC)
    public import Foundation

    /// `BRZConfiguration`, for Objective-C; in Swift use `Braze.Configuration`.
    @objc(BRZConfiguration)
    public final class BRZConfiguration: NSObject {
        let configuration: Braze.Configuration

        /// The server and the authentication of requests.
        @objc public let api: BRZConfigurationApi

        /// As `Braze.Configuration.init(apiKey:endpoint:)`.
        ///
        /// - Parameters:
        ///   - apiKey: The app's API key.
        ///   - endpoint: The server's host name, or a URL.
        @objc(initWithApiKey:endpoint:)
        public init(apiKey: String, endpoint: String) {
            configuration = Braze.Configuration(apiKey: apiKey, endpoint: endpoint)
            api = BRZConfigurationApi(configuration)
            super.init()
        }

        /// As `Braze.Configuration.sessionTimeout`, in seconds.
        @objc public var sessionTimeout: Double {
            get { configuration.sessionTimeout }
            set { configuration.sessionTimeout = newValue }
        }
    }

    /// `configuration.api`, for Objective-C; in Swift use `Braze.Configuration.Api`.
    @objc(BRZConfigurationApi)
    public final class BRZConfigurationApi: NSObject {
        private let configuration: Braze.Configuration

        init(_ configuration: Braze.Configuration) {
            self.configuration = configuration
            super.init()
        }

        /// The app's API key.
        @objc public var key: String { configuration.api.key }
        /// The server's host name, or a URL.
        @objc public var endpoint: String { configuration.api.endpoint }
        /// Whether each request carries the signature of its user.
        @objc public var sdkAuthentication: Bool {
            get { configuration.api.sdkAuthentication }
            set { configuration.api.sdkAuthentication = newValue }
        }
    }

    /// `Braze`, for Objective-C; in Swift use `Braze` itself.
    @objc(Braze)
    public final class BRZBraze: NSObject, Sendable {
        /// The Swift object.
        public let braze: Braze
        private let listener: Listener

        /// As `Braze.init(configuration:)`.
        ///
        /// - Parameter configuration: The configuration. Later changes to it have no effect.
        @objc(initWithConfiguration:)
        public init(configuration: BRZConfiguration) {
            braze = Braze(configuration: configuration.configuration)
            listener = Listener()
            super.init()
        }

        /// As `Braze.sdkAuthDelegate`: held weakly.
        @MainActor @objc public weak var sdkAuthDelegate: (any BRZSDKAuthDelegate)? {
            get { listener.delegate }
            set {
                listener.delegate = newValue
                listener.owner = self
                braze.sdkAuthDelegate = newValue == nil ? nil : listener
            }
        }

        /// As `Braze.enabled`.
        @objc public var enabled: Bool {
            get { braze.enabled }
            set { braze.enabled = newValue }
        }

        /// As `Braze.changeUser(userId:sdkAuthSignature:)`.
        ///
        /// - Parameter userId: The user's id.
        @objc(changeUser:)
        public func changeUser(_ userId: String) { braze.changeUser(userId: userId) }

        /// As `Braze.changeUser(userId:sdkAuthSignature:)`.
        ///
        /// - Parameters:
        ///   - userId: The user's id.
        ///   - signature: The token that the app's backend signed for this user; nil for no token.
        @objc(changeUser:sdkAuthSignature:)
        public func changeUser(_ userId: String, sdkAuthSignature signature: String?) {
            braze.changeUser(userId: userId, sdkAuthSignature: signature)
        }

        /// As `Braze.set(sdkAuthenticationSignature:)`.
        ///
        /// - Parameter signature: The token that the app's backend signed.
        @objc(setSDKAuthenticationSignature:)
        public func setSDKAuthenticationSignature(_ signature: String) {
            braze.set(sdkAuthenticationSignature: signature)
        }

        /// As `Braze.logCustomEvent(name:properties:)`.
        ///
        /// - Parameter name: The event's name.
        @objc(logCustomEvent:)
        public func logCustomEvent(_ name: String) { braze.logCustomEvent(name: name) }

        /// As `Braze.logCustomEvent(name:properties:)`.
        ///
        /// - Parameters:
        ///   - name: The event's name.
        ///   - properties: The event's properties.
        @objc(logCustomEvent:properties:)
        public func logCustomEvent(_ name: String, properties: [String: Any]?) {
            braze.logCustomEvent(name: name, properties: properties)
        }

        /// As `Braze.logPurchase(productId:currency:price:quantity:properties:)`, for one item.
        ///
        /// - Parameters:
        ///   - productId: The product's ID.
        ///   - currency: The currency's code (ISO 4217).
        ///   - price: The price of one item.
        @objc(logPurchase:currency:price:)
        public func logPurchase(_ productId: String, currency: String, price: Double) {
            braze.logPurchase(productId: productId, currency: currency, price: price)
        }

        /// As `Braze.requestImmediateDataFlush()`.
        @objc public func requestImmediateDataFlush() { braze.requestImmediateDataFlush() }

        /// As `Braze.wipeData()`.
        @objc public func wipeData() { braze.wipeData() }

        @MainActor private final class Listener: BrazeSDKAuthDelegate {
            weak var owner: BRZBraze?
            weak var delegate: (any BRZSDKAuthDelegate)?

            nonisolated init() {}

            func braze(
                _ braze: Braze, sdkAuthenticationFailedWithError error: Braze.SDKAuthenticationError
            ) {
                guard let owner else { return }
                delegate?.braze(owner, sdkAuthenticationFailedWithError: BRZSDKAuthenticationError(error))
            }
        }
    }

    /// `BRZSDKAuthenticationError`, for Objective-C; in Swift use `Braze.SDKAuthenticationError`. Its description
    /// omits the signature, a credential that must not be logged.
    @objc(BRZSDKAuthenticationError)
    public final class BRZSDKAuthenticationError: NSObject, Sendable {
        private let error: Braze.SDKAuthenticationError

        init(_ error: Braze.SDKAuthenticationError) {
            self.error = error
            super.init()
        }

        /// The error code.
        @objc public var code: Int { error.code }
        /// The name of the code, such as `EXPIRED`.
        @objc public var reason: String? { error.reason }
        /// The user of the request.
        @objc public var userId: String? { error.userId }
        /// The rejected signature; empty if the request had no signature.
        @objc public var signature: String { error.signature }
        /// True if the server accepted the data nevertheless.
        @objc public var optional: Bool { error.optional }
    }

    /// `BrazeSDKAuthDelegate`, for Objective-C; in Swift use `BrazeSDKAuthDelegate` itself.
    @objc(BrazeSDKAuthDelegate)
    public protocol BRZSDKAuthDelegate: AnyObject {
        /// Called when the server rejects a signature, or (`optional`) would reject it if the app required one.
        ///
        /// - Parameters:
        ///   - braze: The instance that sent the request.
        ///   - error: The error.
        @MainActor
        @objc(braze:sdkAuthenticationFailedWithError:)
        func braze(_ braze: BRZBraze, sdkAuthenticationFailedWithError error: BRZSDKAuthenticationError)
    }
#endif
