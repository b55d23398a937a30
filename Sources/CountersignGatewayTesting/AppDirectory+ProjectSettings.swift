package import CountersignGateway

/// One setting at a time, for tests; each throws what `changeProject` throws.
extension AppDirectory {
    package func setProjectToken(_ token: String, for appID: String) throws(GatewayError) {
        try changeProject(of: appID) { $0.token = token }
    }

    package func setCustomerTokens(_ mode: CustomerTokens, for appID: String) throws(GatewayError) {
        try changeProject(of: appID) { $0.customerTokens = mode }
    }

    /// - Returns: The secret; one that is made when none is given.
    package func setPushWebhook(
        url: String, secret: String? = nil, allowsPrivateAddresses: Bool = false, for appID: String
    ) throws(GatewayError) -> String {
        let secret = secret ?? PushWebhook.newSecret()
        let webhook = try PushWebhook(
            url: url, secret: secret, allowsPrivateAddresses: allowsPrivateAddresses)
        try changeProject(of: appID) { $0.webhook = webhook }
        return secret
    }

    package func removePushWebhook(of appID: String) throws(GatewayError) {
        try changeProject(of: appID) { $0.webhook = nil }
    }
}
