package import GatewayModel

/// The counts of a gateway without requests.
package struct NoTraffic: AnalyticsSource {
    package init() {}

    package func take() -> GatheredAnalytics { GatheredAnalytics() }
}
