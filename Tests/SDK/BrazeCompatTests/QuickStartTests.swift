import CountersignCore
import CountersignTesting
import CountersignTransport
import Foundation
import Testing

@testable import BrazeCompat

/// The calls of the vendor's guides for BrazeKit 18.2.0 (setup, logging, users, purchases), with our values.
///
/// `guidesCompile` checks that an app's code compiles with another import. No test uses a network.
@MainActor
struct QuickStartTests {
    /// Not isolated to the main actor, because an app's delegate need not be.
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
        let lines = Lock<[String]>([])
        configuration.logger.print = { message, level in
            lines.withLock { $0.append("\(level): \(message)") }
            return false
        }
        let braze = Braze(configuration: configuration)
        #expect(lines.withLock { $0.count } == 1)
        #expect(lines.withLock { $0[0] }.hasPrefix("error: the configuration is invalid: "))
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

    @Test func aDisabledLoggerIsSilent() {
        let configuration = Braze.Configuration(apiKey: "YOUR-API-KEY", endpoint: "not a host name")
        configuration.logger.level = .disabled
        let lines = Lock<[String]>([])
        configuration.logger.print = { message, _ in
            lines.withLock { $0.append(message) }
            return false
        }
        #expect(Braze(configuration: configuration).configurationProblem != nil)
        #expect(lines.withLock { $0.isEmpty })
    }

    /// Braze documents this behaviour of `wipeData`. A user set after the wipe is still set after the next start.
    @Test func afterAWipeEventsAreRecordedWhenEnabledAgain() async throws {
        let folder = TemporaryFolder()
        let server = ScriptedTransport { _ in
            TransportResponse(status: 201, body: Array(#"{"message":"success"}"#.utf8))
        }
        func start() -> Braze {
            let configuration = Braze.Configuration(apiKey: "key", endpoint: "https://sdk.example.com")
            configuration.api.requestPolicy = .manual
            configuration.dataDirectory = folder.url
            configuration.transport = server
            return Braze(configuration: configuration)
        }
        func sent() -> String { server.requests.map { String(decoding: $0.body, as: UTF8.self) }.joined() }
        func sessions() -> Set<String> {
            Set(
                server.requests.flatMap { request in
                    let body = try? JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any]
                    return (body?["events"] as? [[String: Any]] ?? []).compactMap {
                        $0["session_id"] as? String
                    }
                })
        }
        var braze = start()
        braze.changeUser(userId: "ada")
        _ = await braze.flush()
        let earlier = sessions()
        braze.logCustomEvent(name: "before")
        braze.wipeData()
        #expect(!braze.enabled && braze.user.id == nil)
        braze.enabled = true
        braze.logCustomEvent(name: "nobody's")
        _ = await braze.flush()
        let later = sessions().subtracting(earlier)
        #expect(sent().contains("nobody's") && !later.isEmpty)
        braze.changeUser(userId: "bob")
        braze.enabled = true
        braze.logCustomEvent(name: "after")
        _ = await braze.flush()
        #expect(braze.enabled && sent().contains("after") && !sent().contains("before"))
        await braze.close()
        braze = start()
        #expect(braze.user.id == "bob")
        await braze.close()
    }
}
