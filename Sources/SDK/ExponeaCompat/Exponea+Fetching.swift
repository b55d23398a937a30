public import CountersignBloomreach
internal import CountersignCore
internal import CountersignDelivery
public import Foundation

/// The result of a request. As in ExponeaSDK, and unlike `Swift.Result`, the error may have any type.
public enum Result<Value> {
    /// The value.
    case success(Value)
    /// The error, usually a `CountersignError`.
    case failure(any Error)

    /// The value.
    ///
    /// - Returns: The value.
    /// - Throws: The error of a failed request.
    public func get() throws -> Value {
        switch self {
        case .success(let value): return value
        case .failure(let error): throw error
        }
    }
}

extension Result: Sendable where Value: Sendable {}

/// A message of the App Inbox.
public typealias MessageItem = AppInboxMessage

extension AppInboxMessage {
    /// As `isRead`.
    public var read: Bool { isRead }
    /// As `createdAt`.
    public var receivedTime: Date { createdAt }
}

/// A button of a message.
public struct MessageItemAction: Sendable, Equatable {
    /// `app`, `browser`, `deeplink` or `no_action`.
    public let action: String?
    /// The button's label.
    public let title: String?
    /// The button's URL.
    public let url: String?

    /// Makes an action.
    ///
    /// - Parameters:
    ///   - action: The kind of action.
    ///   - title: The button's label.
    ///   - url: The button's URL.
    public init(action: String?, title: String?, url: String?) {
        self.action = action
        self.title = title
        self.url = url
    }
}

/// Options of a recommendation. Not supported; see ``Exponea/fetchRecommendation(with:completion:)``.
public struct RecommendationOptions: Sendable, Hashable {
    /// The engine's ID.
    public var id: String
    /// Whether random items fill a list that has fewer than `size` items.
    public var fillWithRandom: Bool
    /// The number of items. Default: 10.
    public var size: Int
    /// Items and their weights instead of the customer's history; nil for the history.
    public var items: [String: String]?
    /// Whether the request is left out of the customer's history.
    public var noTrack: Bool
    /// The wanted members of an item; nil for all.
    public var catalogAttributesWhitelist: [String]?

    /// Creates options.
    public init(
        id: String, fillWithRandom: Bool = false, size: Int = 10, items: [String: String]? = nil,
        noTrack: Bool = false, catalogAttributesWhitelist: [String]? = nil
    ) {
        self.id = id
        self.fillWithRandom = fillWithRandom
        self.size = size
        self.items = items
        self.noTrack = noTrack
        self.catalogAttributesWhitelist = catalogAttributesWhitelist
    }
}

/// The members of an item of the app's catalog.
public protocol RecommendationUserData: Codable, Equatable {}

/// The system members of every recommended item.
public struct RecommendationSystemData: Sendable, Equatable {
    /// The engine's name.
    public let engineName: String
    /// The item's ID.
    public let itemId: String
    /// The recommendation's ID.
    public let recommendationId: String
    /// The variant; nil if missing.
    public let recommendationVariantId: String?
}

/// The recommended items, with the members that the app expects.
public struct RecommendationResponse<UserData: RecommendationUserData> {
    /// An item.
    public struct Item {
        /// The system members.
        public let systemData: RecommendationSystemData
        /// The members that the app expects.
        public let userData: UserData
    }

    /// Whether the engine has responded; always true in a `Result.success`.
    public let success: Bool
    /// The error.
    public let error: String?
    /// The items, the best first.
    public let value: [Item]?
}

extension CountersignError.Code {
    /// The error code of unsupported methods, which exist so that code written for ExponeaSDK compiles.
    public static let notSupported = CountersignError.Code(rawValue: "not_supported")
}

extension RecommendationResponse.Item: Sendable where UserData: Sendable {}
extension RecommendationResponse: Sendable where UserData: Sendable {}

/// The consent categories of a project.
public struct ConsentsResponse: Sendable {
    /// The categories.
    public let consents: [ConsentCategory]
}

extension Exponea {
    /// As `BloomreachClient.fetchAppInbox()`.
    ///
    /// - Parameter completion: Takes all messages, newest first, or a `CountersignError`.
    public func fetchAppInbox(completion: @escaping @Sendable (Result<[MessageItem]>) -> Void) {
        call(completion) { try await $0.fetchAppInbox() }
    }

    /// As `BloomreachClient.markAsRead(_:)`.
    ///
    /// - Parameters:
    ///   - message: A fetched message.
    ///   - completition: Receives true when the server has confirmed, and false after an error, which is logged.
    ///     Spelled as in the vendor's SDK.
    public func markAppInboxAsRead(
        _ message: MessageItem, completition: (@Sendable (Bool) -> Void)? = nil
    ) {
        call({ (result: Result<Void>) in
            switch result {
            case .success: completition?(true)
            case .failure(let error):
                Self.logger.log(.warning, message: "\(error)")
                completition?(false)
            }
        }) { try await $0.markAsRead(message) }
    }

    /// Returns a message of the App Inbox from the cache, or else fetches it.
    ///
    /// - Parameters:
    ///   - messageId: The message's ID.
    ///   - completion: Receives the message, or a `CountersignError`; `unknownMessage` if not found.
    public func fetchAppInboxItem(
        _ messageId: String, completion: @escaping @Sendable (Result<MessageItem>) -> Void
    ) {
        call(completion) { client in
            let known = await client.cachedAppInbox().first { $0.id == messageId }
            if let known { return known }
            let fetched = try await client.fetchAppInbox().first { $0.id == messageId }
            guard let fetched else {
                throw CountersignError(.unknownMessage, .fetchAppInbox, "there is no message with this id")
            }
            return fetched
        }
    }

    /// Records that the customer has opened a message, unless `has_tracking_consent` of the message is false.
    ///
    /// - Parameter message: A fetched message.
    public func trackAppInboxOpened(message: MessageItem) {
        guard hasTrackingConsent(message) else { return }
        trackAppInboxOpenedWithoutTrackingConsent(message: message)
    }

    /// As `trackAppInboxOpened(message:)`, without checking consent.
    ///
    /// - Parameter message: A fetched message.
    public func trackAppInboxOpenedWithoutTrackingConsent(message: MessageItem) {
        trackAppInbox(message, ["status": "opened"])
    }

    /// Records a click on a button or link of a message, unless `has_tracking_consent` of the message is false.
    ///
    /// - Parameters:
    ///   - action: The button.
    ///   - message: A fetched message.
    public func trackAppInboxClick(action: MessageItemAction, message: MessageItem) {
        guard hasTrackingConsent(message) else { return }
        trackAppInboxClickWithoutTrackingConsent(action: action, message: message)
    }

    /// As `trackAppInboxClick(action:message:)`, without checking consent.
    ///
    /// - Parameters:
    ///   - action: The button.
    ///   - message: A fetched message.
    public func trackAppInboxClickWithoutTrackingConsent(action: MessageItemAction, message: MessageItem) {
        var properties: JSONObject = ["status": "clicked"]
        properties["cta"] = action.title.map { .string($0) }
        properties["url"] = action.url.map { .string($0) }
        trackAppInbox(message, properties)
    }

    private func hasTrackingConsent(_ message: MessageItem) -> Bool {
        switch message.content["has_tracking_consent"] {
        case nil, .null, .bool(true), .integer(1), .string("true"), .string("1"): return true
        default:
            Self.logger.log(.verbose, message: "Not tracked: the message has no tracking consent")
            return false
        }
    }

    private func trackAppInbox(_ message: MessageItem, _ given: JSONObject) {
        var properties = given
        for member in ["attributes", "url_params"] {
            guard case .object(let values) = message.content[member] else { continue }
            properties.merge(values) { own, _ in own }
        }
        properties["action_type"] = "app inbox"
        properties["consent_category_tracking"] = message.content["consent_category_tracking"]
        perform { [properties] client in
            let platform: JSONObject = ["platform": .string(client.configuration.platform)]
            client.trackEvent("campaign", properties: properties.merging(platform) { $1 }, kind: .appInbox)
        }
    }

    /// As `BloomreachClient.fetchConsents()`.
    ///
    /// - Parameter completion: Takes the categories, or a `CountersignError`.
    public func fetchConsents(
        completion: @escaping @Sendable (Result<ConsentsResponse>) -> Void
    ) {
        call(completion) { ConsentsResponse(consents: try await $0.fetchConsents()) }
    }

    /// Not supported: kept so that apps compile.
    ///
    /// - Parameters:
    ///   - options: Ignored.
    ///   - completion: Receives a `CountersignError` with the code `notSupported`.
    public func fetchRecommendation<UserData: RecommendationUserData & Sendable>(
        with options: RecommendationOptions,
        completion: @escaping @Sendable (Result<RecommendationResponse<UserData>>) -> Void
    ) {
        call(completion) { _ in
            throw CountersignError(.notSupported, "recommendations are not supported")
        }
    }

    /// As `BloomreachClient.fetchInAppMessages()`.
    ///
    /// - Parameter completion: Takes the messages, or a `CountersignError`.
    public func fetchInAppMessages(
        completion: @escaping @Sendable (Result<[InAppMessage]>) -> Void
    ) {
        call(completion) { try await $0.fetchInAppMessages() }
    }

    /// Asks the server to send a push notification to this device, to test delivery.
    ///
    /// - Parameters:
    ///   - pushToken: The device's token for push notifications.
    ///   - completion: Takes nothing, or a `CountersignError`.
    public func sendSelfCheck(
        pushToken: String, completion: @escaping @Sendable (Result<Void>) -> Void
    ) {
        call(completion) { try await $0.sendSelfCheck(pushToken: pushToken) }
    }

    private func call<Value: Sendable>(
        _ completion: @escaping @Sendable (Result<Value>) -> Void,
        _ body: @escaping @Sendable (BloomreachClient) async throws -> Value
    ) {
        perform { client in
            Task {
                do {
                    completion(.success(try await body(client)))
                } catch {
                    completion(.failure(error))
                }
            }
        }
    }
}
