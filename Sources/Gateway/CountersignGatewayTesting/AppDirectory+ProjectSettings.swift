package import GatewayModel
package import GatewayStorage

/// Changes single settings in tests. Each method throws the errors of `setProject`.
extension AppDirectory {
    package func setProjectToken(_ token: String, for appID: String) throws(GatewayError) {
        try change(appID) { $0.token = token }
    }

    package func setCustomerTokens(_ mode: CustomerTokens, for appID: String) throws(GatewayError) {
        try change(appID) { $0.customerTokens = mode }
    }

    /// Returns the secret, which is generated unless given.
    package func setPushWebhook(
        url: String, secret: String? = nil, allowsPrivateAddresses: Bool = false, for appID: String
    ) throws(GatewayError) -> String {
        let secret = secret ?? PushWebhook.newSecret()
        let webhook = try PushWebhook(
            url: url, secret: secret, allowsPrivateAddresses: allowsPrivateAddresses)
        try change(appID) { $0.webhook = webhook }
        return secret
    }

    private func change(
        _ appID: String, _ body: (inout ProjectSettings) -> Void
    ) throws(GatewayError) {
        var settings = try projects.project(of: appID).settings
        body(&settings)
        try setProject(settings, for: appID)
    }
}
