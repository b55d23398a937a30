package import GatewayModel

extension AppRules {
    package init(days: Int? = nil, bytes: Int? = nil) {
        self.init()
        (retentionDays, retentionBytes) = (days, bytes)
    }
}
