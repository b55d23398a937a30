import CountersignCore
import CountersignTesting
import Foundation
import Testing

@testable import Countersign
@testable import CountersignDelivery

/// Validation of an app's configuration.
struct DeliverySettingsTests {
    @Test func configurationsThatCannotWorkAreRejected() throws {
        let changes: [(String, (inout CountersignConfiguration) throws -> Void)] = [
            ("endpoint", { $0.endpoint = try #require(URL(string: "ftp://gateway.example")) }),
            ("endpoint", { $0.endpoint = try #require(URL(string: "https:///path")) }),
            ("endpoint", { $0.endpoint = URL(fileURLWithPath: "/tmp") }),
            ("writeKey", { $0.writeKey = "" }), ("writeKey", { $0.writeKey = "wk_te st" }),
            ("writeKey", { $0.writeKey = "wk_test\r\nX-Evil: b" }), ("writeKey", { $0.writeKey = "wk_tést" }),
            ("instanceName", { $0.instanceName = "../other" }),
            ("tokenProviderTimeout", { $0.tokenProviderTimeout = 0 }),
            ("tokenProviderTimeout", { $0.tokenProviderTimeout = .nan }),
            ("batchEvents", { $0.batchEvents = 0 }), ("batchBytes", { $0.batchBytes = -1 }),
            ("requestTimeout", { $0.requestTimeout = 0 }), ("requestTimeout", { $0.requestTimeout = .nan }),
            ("limits", { $0.limits.maximumEvents = 0 }), ("limits", { $0.limits.maximumBytes = 0 }),
            ("limits", { $0.limits.maximumAge = 0 }), ("limits", { $0.limits.maximumAge = .nan }),
            ("limits", { $0.limits.maximumEventBytes = 0 }),
            ("limits", { $0.limits.maximumUnsavedEvents = 0 }),
            ("limits", { $0.limits.maximumUnsavedBytes = 0 }),
            ("limits", { $0.limits.maximumQuarantinedEvents = -1 }),
            ("interval", { $0.flushPolicy.interval = -1 }),
            ("networkRetry", { $0.networkRetry.baseDelay = 0 }),
            ("networkRetry", { $0.networkRetry.maximumServerDelay = -1 }),
            ("authenticationRetry", { $0.authenticationRetry.maximumDelay = .nan }),
        ]
        for (setting, change) in changes {
            var bench = try Bench()
            try change(&bench.configuration)
            let error = #expect(throws: CountersignError.self, "\(setting)") { try bench.makeClient() }
            #expect(error?.code == .invalidConfiguration)
            #expect(error?.detail.contains(setting) == true, "\(setting): \(error?.detail ?? "")")
            #expect(error?.detail.contains("wk_t") == false)
        }
    }
}
