// Fetch the App Inbox of a Bloomreach project with a customer token.
import CountersignBloomreach
import Foundation

// snippet.show
/// Requests a token of the signed-in user from your backend.
struct BackendTokens: AsyncAuthorizationProvider {
    func authorizationToken() async throws -> String? {
        ProcessInfo.processInfo.environment["CUSTOMER_TOKEN"]
    }
}

func showInbox(project: BloomreachProject, user: String) async throws {
    var configuration = BloomreachConfiguration(project: project)
    configuration.advancedAuthEnabled = true
    configuration.authorizationProvider = .suspending(BackendTokens())
    let client = try BloomreachClient(configuration: configuration)

    client.identifyCustomer(["registered": user])
    client.trackEvent("inbox_opened")  // returns at once
    do {
        for message in try await client.fetchAppInbox() where !message.isRead {
            print(message.title ?? "")
            try await client.markAsRead(message)
        }
    } catch {
        print(error.code == .noCustomerToken ? "sign in first" : "\(error)")
    }
    await client.close()
}
// snippet.hide

/// Calls the backend only when the cached token is about to expire.
func cached(provider: BackendTokens, folder: URL) -> CustomerTokenProvider {
    // On Apple platforms: KeychainTokenStore(service: "com.example.customer-token").
    .suspending(CachingAuthorizationProvider(provider, store: FileTokenStore(directory: folder)))
}

func visit(client: BloomreachClient) async {
    client.startSession()
    print(await CountersignInspector(client).inspect())
    client.endSession()
}

func track(provider: BackendTokens) async throws {
    var configuration = BloomreachConfiguration(
        project: try BloomreachProject(token: "YOUR-PROJECT-TOKEN", apiKey: "YOUR API KEY"))
    configuration.advancedAuthEnabled = true
    configuration.authorizationProvider = .suspending(provider)
    let client = try BloomreachClient(configuration: configuration)

    client.identifyCustomer(["registered": "ada@example.com"])
    client.trackEvent("purchase", properties: ["total": 42.5])  // returns at once
    let messages = try await client.fetchAppInbox()
    print(messages.count)
}

if let key = ProcessInfo.processInfo.environment["WRITE_KEY"] {
    let project = try BloomreachProject(token: "shop", apiKey: key, baseURL: "http://127.0.0.1:8787")
    try await showInbox(project: project, user: "ada")
}
