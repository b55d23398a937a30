// The Swift samples of Braze's page "SDK Authentication", in its order and unchanged. What stands around them is what the
// page takes for granted: an app delegate that keeps the instance, and a delegate that can get a new signature.
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

    /// Returns when the delegate has heard of a failure and has answered it.
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
        // What follows is the test's.
        errors.append(error)
        failure.yield()
    }
}
