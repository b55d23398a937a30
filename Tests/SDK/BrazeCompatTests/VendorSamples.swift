// The Swift samples of Braze's page "SDK Authentication", in its order and unchanged. The surrounding code
// is assumed by the page: an app delegate that holds the instance, and a source of new signatures.
import BrazeCompat

@MainActor
final class AppDelegate {
    static var braze: Braze?
}

@MainActor
enum VendorSamples {
    static func enable() {
        let configuration = Braze.Configuration(
            apiKey: "{YOUR-BRAZE-API-KEY}",
            endpoint: "{YOUR-BRAZE-ENDPOINT}")
        configuration.api.sdkAuthentication = true
        let braze = Braze(configuration: configuration)
        AppDelegate.braze = braze
    }

    static func changeUser() {
        AppDelegate.braze?.changeUser(userId: "userId", sdkAuthSignature: "signature")
    }

    static func setSignature() {
        AppDelegate.braze?.set(sdkAuthenticationSignature: "signature")
    }

    static func register(_ delegate: any BrazeSDKAuthDelegate, configuration: Braze.Configuration) {
        let braze = Braze(configuration: configuration)
        braze.sdkAuthDelegate = delegate
        AppDelegate.braze = braze
    }
}

@MainActor
final class SampleDelegate: BrazeSDKAuthDelegate {
    var errors: [Braze.SDKAuthenticationError] = []
    private let (failed, failure) = AsyncStream.makeStream(of: Void.self)
    let getNewSignatureSomehow: (Braze.SDKAuthenticationError) -> String

    init(getNewSignatureSomehow: @escaping (Braze.SDKAuthenticationError) -> String) {
        self.getNewSignatureSomehow = getNewSignatureSomehow
    }

    /// Returns when the delegate has handled a failure.
    func waitForError() async {
        guard errors.isEmpty else { return }
        for await _ in failed { break }
    }

    func braze(_ braze: Braze, sdkAuthenticationFailedWithError error: Braze.SDKAuthenticationError) {
        // TODO: Optionally log to your error-reporting service
        // TODO: Check if the `user_id` within the `error` matches the currently logged-in user
        print("Invalid SDK Authentication signature.")
        let newSignature = getNewSignatureSomehow(error)
        AppDelegate.braze?.set(sdkAuthenticationSignature: newSignature)
        // Added for the test.
        errors.append(error)
        failure.yield()
    }
}
