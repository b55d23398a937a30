public import Countersign
internal import CountersignCore
internal import Foundation

/// A message of the App Inbox.
public typealias MessageItem = AppInboxMessage

/// The categories of consent that a project has.
public struct ConsentsResponse: Sendable {
    /// The categories.
    public let consents: [ConsentCategory]
}

extension Exponea {
    /// As `BloomreachClient.fetchAppInbox()`.
    ///
    /// - Parameter completion: Takes all messages, the newest first, or a `BloomreachError`.
    public func fetchAppInbox(completion: @escaping @Sendable (Result<[MessageItem], any Error>) -> Void) {
        call(completion) { try await $0.fetchAppInbox() }
    }

    /// As `BloomreachClient.markAsRead(_:)`.
    ///
    /// - Parameters:
    ///   - message: As it was fetched.
    ///   - completion: Takes true when the server knows that it was read; otherwise the reason is logged.
    public func markAppInboxAsRead(_ message: MessageItem, completion: (@Sendable (Bool) -> Void)? = nil) {
        call({ (result: Result<Void, any Error>) in
            switch result {
            case .success: completion?(true)
            case .failure(let error):
                Self.logger.log(.warning, message: "\(error)")
                completion?(false)
            }
        }) { try await $0.markAsRead(message) }
    }

    /// As `BloomreachClient.fetchConsents()`.
    ///
    /// - Parameter completion: Takes the categories, or a `BloomreachError`.
    public func fetchConsents(
        completion: @escaping @Sendable (Result<ConsentsResponse, any Error>) -> Void
    ) {
        call(completion) { ConsentsResponse(consents: try await $0.fetchConsents()) }
    }

    /// As `BloomreachClient.fetchRecommendations(_:)`.
    ///
    /// - Parameters:
    ///   - options: What to ask.
    ///   - completion: Takes the items, or a `BloomreachError`.
    public func fetchRecommendation(
        with options: RecommendationOptions,
        completion: @escaping @Sendable (Result<[Recommendation], any Error>) -> Void
    ) {
        call(completion) { try await $0.fetchRecommendations(options) }
    }

    /// As `BloomreachClient.fetchInAppMessages()`.
    ///
    /// - Parameter completion: Takes the messages, or a `BloomreachError`.
    public func fetchInAppMessages(
        completion: @escaping @Sendable (Result<[InAppMessage], any Error>) -> Void
    ) {
        call(completion) { try await $0.fetchInAppMessages() }
    }

    /// As `BloomreachClient.sendSelfCheck(pushToken:)`.
    ///
    /// - Parameters:
    ///   - pushToken: The device's token for push notifications.
    ///   - completion: Takes nothing, or a `BloomreachError`.
    public func sendSelfCheck(
        pushToken: String, completion: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        call(completion) { try await $0.sendSelfCheck(pushToken: pushToken) }
    }

    private func call<Value: Sendable>(
        _ completion: @escaping @Sendable (Result<Value, any Error>) -> Void,
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
