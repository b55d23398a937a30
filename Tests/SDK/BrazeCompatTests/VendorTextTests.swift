import Foundation
import Testing

/// Checks that the samples in `VendorSamples.swift` match Braze's page "SDK Authentication".
struct VendorTextTests {
    private static let blocks = [
        #"""
        let configuration = Braze.Configuration(apiKey: "{YOUR-BRAZE-API-KEY}",
                                                endpoint: "{YOUR-BRAZE-ENDPOINT}")
        configuration.api.sdkAuthentication = true
        let braze = Braze(configuration: configuration)
        AppDelegate.braze = braze
        """#,
        #"""
        AppDelegate.braze?.changeUser(userId: "userId", sdkAuthSignature: "signature")
        """#,
        #"""
        AppDelegate.braze?.set(sdkAuthenticationSignature: "signature")
        """#,
        #"""
        let braze = Braze(configuration: configuration)
        braze.sdkAuthDelegate = delegate
        AppDelegate.braze = braze
        """#,
        #"""
        func braze(_ braze: Braze, sdkAuthenticationFailedWithError error: Braze.SDKAuthenticationError) {
          // TODO: Optionally log to your error-reporting service
          // TODO: Check if the `user_id` within the `error` matches the currently logged-in user
          print("Invalid SDK Authentication signature.")
          let newSignature = getNewSignatureSomehow(error)
          AppDelegate.braze?.set(sdkAuthenticationSignature: newSignature)
        """#,
    ]

    /// Only line breaks, indentation and trailing commas may differ, because the formatter decides those.
    private func tokens(_ code: String) -> String {
        code.filter { !$0.isWhitespace }.replacingOccurrences(of: ",]", with: "]")
    }

    @Test func vendorSamplesEqualBrazesDocumentation() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
            "VendorSamples.swift")
        let text = tokens(try String(contentsOf: file, encoding: .utf8))
        for block in Self.blocks { #expect(text.contains(tokens(block)), "\(block)") }
    }
}
