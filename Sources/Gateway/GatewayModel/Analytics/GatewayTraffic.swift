/// Requests and events of a gateway within a minute.
package struct GatewayTraffic: Sendable, Equatable {
    package var accepted: Int
    package var rejected: Int
    package var events: Int

    package init(accepted: Int = 0, rejected: Int = 0, events: Int = 0) {
        self.accepted = accepted
        self.rejected = rejected
        self.events = events
    }
}
