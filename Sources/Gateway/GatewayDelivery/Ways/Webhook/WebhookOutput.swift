internal import Foundation
package import GatewayHTTP
package import GatewayModel
internal import GatewayStorage

/// The transport, clock and stores that all webhooks of a gateway use.
package struct WebhookOutput: Sendable {
    /// Sends one request, then calls `done` once. `isCancelled` returns true to cancel the request.
    package typealias Send =
        @Sendable (
            _ body: [UInt8], _ messageID: String, _ endpoint: WebhookEndpoint,
            _ isCancelled: @escaping @Sendable () -> Bool,
            _ done: @escaping @Sendable (WebhookAttempt) -> Void
        ) -> Void

    let counts = WebhookCounts()
    let attempts: DeliveryStore
    let send: Send
    let now: @Sendable () -> Date
    let report: @Sendable (WebhookEndpoint, any Error) -> Void
}
