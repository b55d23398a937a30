package import GatewayModel

/// Counts of a gateway that no request has reached.
package struct NoTraffic: AnalyticsSource {
    package init() {}

    package func take() -> GatheredAnalytics { GatheredAnalytics() }
}
