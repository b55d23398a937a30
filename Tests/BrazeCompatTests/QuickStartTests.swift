import BrazeCompat
import Foundation
import Testing

/// The calls of the vendor's guides for BrazeKit 18.2.0 (setup, logging, users, purchases), with our values.
///
/// None of it reaches a server: what is checked is that an app's code compiles with another import.
@MainActor
struct QuickStartTests {
    /// As an app has it: not isolated, as `@objc` delegates of UIKit need not be.
    final class Listener: BrazeSDKAuthDelegate {
        func braze(_ braze: Braze, sdkAuthenticationFailedWithError error: Braze.SDKAuthenticationError) {
            if error.optional { return }
        }
    }

    @Test func guidesCompile() async throws {
        let configuration = Braze.Configuration(apiKey: "YOUR-API-KEY", endpoint: "not a host name")
        configuration.api.sdkAuthentication = true
        configuration.api.requestPolicy = .manual
        configuration.sessionTimeout = 30
        configuration.logger.level = .info
        let lines = Lines()
        configuration.logger.print = { message, level in
            lines.add("\(level): \(message)")
            return false
        }
        let braze = Braze(configuration: configuration)
        #expect(lines.all.count == 1)
        #expect(lines.all[0].hasPrefix("error: the configuration does not work: "))
        let listener = Listener()
        braze.sdkAuthDelegate = listener

        braze.changeUser(userId: "ada")
        let user = braze.user
        user.set(email: "ada@example.com")
        user.set(dateOfBirth: Date())
        user.setCustomAttribute(key: "last_login_date", value: Date())
        user.setCustomAttribute(key: "tags", array: ["tea", "coffee"])
        user.setCustomAttribute(key: "visits", array: [["shop": "A", "on": Date()]])
        user.id { _ in }
        _ = await user.id()
        braze.logCustomEvent(
            name: "open_checkout_controller",
            properties: ["checkout_id": "7", "product_ids": ["a", "b"]])
        braze.logPurchase(productId: "a", currency: "USD", price: 14.99, properties: ["checkout_id": "7"])
        braze.set(sdkAuthenticationSignature: "signature")
        braze.requestImmediateDataFlush()
        braze.enabled = false
        braze.wipeData()
        braze.startSession()
        braze.endSession()
        #expect(braze.configurationProblem != nil)
    }

    private final class Lines: @unchecked Sendable {
        // `@unchecked Sendable`: the lock guards `lines`.
        private let lock = NSLock()
        private var lines: [String] = []

        var all: [String] { lock.withLock { lines } }

        func add(_ line: String) {
            lock.withLock { lines.append(line) }
        }
    }
}
