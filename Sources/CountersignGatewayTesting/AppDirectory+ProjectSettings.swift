package import GatewayModel
package import GatewayStorage

/// One setting at a time, for tests; each throws what `setProject` throws.
extension AppDirectory {
    package func setProjectToken(_ token: String, for appID: String) throws(GatewayError) {
        try change(appID) { $0.token = token }
    }

    package func setCustomerTokens(_ mode: CustomerTokens, for appID: String) throws(GatewayError) {
        try change(appID) { $0.customerTokens = mode }
    }

    /// Returns the secret; one that is made when none is given.
    package func setPushWebhook(
        url: String, secret: String? = nil, allowsPrivateAddresses: Bool = false, for appID: String
    ) throws(GatewayError) -> String {
        let secret = secret ?? PushWebhook.newSecret()
        let webhook = try PushWebhook(
            url: url, secret: secret, allowsPrivateAddresses: allowsPrivateAddresses)
        try change(appID) { $0.webhook = webhook }
        return secret
    }

    package func removePushWebhook(of appID: String) throws(GatewayError) {
        try change(appID) { $0.webhook = nil }
    }

    private func change(
        _ appID: String, _ body: (inout ProjectSettings) -> Void
    ) throws(GatewayError) {
        var settings = try projects.project(of: appID).settings
        body(&settings)
        try setProject(settings, for: appID)
    }
}
