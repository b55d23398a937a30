package import GatewayModel

package struct NoTraffic: AnalyticsSource {
    package init() {}

    package func take() -> GatheredAnalytics { GatheredAnalytics() }
}
