internal import CountersignDelivery
public import Foundation

extension Exponea {
    /// As `BloomreachClient.identifyCustomer(_:properties:timestamp:)`.
    ///
    /// - Parameters:
    ///   - customerIds: Such as `registered`; values that are no text are written as one.
    ///   - properties: What is known of the customer.
    ///   - timestamp: When that was so, in seconds since 1970; nil for now.
    public func identifyCustomer(
        customerIds: [String: any JSONConvertible]?, properties: [String: any JSONConvertible] = [:],
        timestamp: Double? = nil
    ) {
        let ids = (customerIds ?? [:]).mapValues { id in
            if case .string(let text) = id.jsonValue { text } else { "\(id)" }
        }
        let properties = JSONObject(properties.mapValues(\.jsonValue))
        perform { $0.identifyCustomer(ids, properties: properties, timestamp: timestamp) }
    }

    /// As `BloomreachClient.trackEvent(_:properties:timestamp:kind:)`.
    ///
    /// - Parameters:
    ///   - properties: More about it.
    ///   - timestamp: When, in seconds since 1970; nil for now.
    ///   - eventType: What it was. Without one nothing is recorded.
    public func trackEvent(
        properties: [String: any JSONConvertible] = [:], timestamp: Double? = nil, eventType: String?
    ) {
        let properties = JSONObject(properties.mapValues(\.jsonValue))
        perform { $0.trackEvent(eventType ?? "", properties: properties, timestamp: timestamp) }
    }

    /// Records a payment.
    ///
    /// - Parameters:
    ///   - properties: More about it.
    ///   - timestamp: When, in seconds since 1970; nil for now.
    public func trackPayment(properties: [String: any JSONConvertible], timestamp: Double? = nil) {
        let properties = JSONObject(properties.mapValues(\.jsonValue))
        perform { $0.trackEvent("payment", properties: properties, timestamp: timestamp, kind: .payment) }
    }

    /// As `BloomreachClient.trackCampaignClick(_:timestamp:)`.
    ///
    /// - Parameters:
    ///   - url: The link that the app was opened through.
    ///   - timestamp: When, in seconds since 1970; nil for now.
    public func trackCampaignClick(url: URL, timestamp: Double? = nil) {
        perform { $0.trackCampaignClick(url, timestamp: timestamp) }
    }

    /// As `BloomreachClient.startSession()`.
    public func trackSessionStart() {
        perform { $0.startSession() }
    }

    /// As `BloomreachClient.endSession()`.
    public func trackSessionEnd() {
        perform { $0.endSession() }
    }

    /// As `BloomreachClient.trackPushToken(_:)`.
    ///
    /// - Parameter token: The token in hexadecimal digits; nil when the person has taken the permission back.
    public func trackPushToken(_ token: String?) {
        perform { $0.trackPushToken(token) }
    }

    /// As `BloomreachClient.trackPushToken(_:)`.
    ///
    /// - Parameter token: The token's bytes.
    public func trackPushToken(_ token: Data) {
        perform { $0.trackPushToken(token) }
    }

    /// As `trackPushToken(_:)`.
    ///
    /// - Parameter deviceToken: What the app's delegate was given.
    public func handlePushNotificationToken(deviceToken: Data) { trackPushToken(deviceToken) }

    /// Starts over with a customer of whom nothing is known.
    public func anonymize() {
        perform { $0.anonymize() }
    }

    /// As `anonymize()`.
    ///
    /// - Parameter completion: Called when what was recorded for the earlier customer was sent, as far as that was possible.
    public func anonymize(completion: (@Sendable () -> Void)?) {
        perform { client in
            client.anonymize()
            Task {
                await client.flush()
                completion?()
            }
        }
    }

    /// Ends the SDK's work, removes all data of this device, and lets `configure` be called again. It waits for the disk.
    ///
    /// - Parameter completion: Called when nothing of it is at work any more.
    public func stopIntegration(completion: (@Sendable () -> Void)? = nil) {
        // Whoever configures next must find nothing of this one.
        let stopped = stop { client in
            do throws(CountersignError) {
                try client.wipeDataNow()
            } catch {
                Self.logger.log(.error, message: "Local data could not be removed: \(error)")
            }
        }
        guard let client = stopped else {
            completion?()
            return
        }
        Task {
            await client.close()
            completion?()
        }
    }

    /// Starts over with a customer of whom nothing is known, in another project.
    ///
    /// - Parameters:
    ///   - exponeaProject: The project from now on. If it cannot work the reason is logged and nothing happens.
    ///   - projectMapping: The mapping from now on; nil for none.
    public func anonymize(
        exponeaProject: ExponeaProject, projectMapping: [EventType: [ExponeaProject]]? = nil
    ) {
        do throws(CountersignError) {
            let project = try exponeaProject.project()
            let mapping = try Self.mapping(projectMapping, baseURL: exponeaProject.baseUrl)
            perform { $0.anonymize(project: project, mapping: mapping) }
        } catch {
            Self.logger.log(.error, message: "Can't change the project: \(error.detail)")
        }
    }

    /// As `anonymize(exponeaProject:projectMapping:)`, as version 4 of ExponeaSDK names it.
    ///
    /// - Parameters:
    ///   - exponeaIntegrationType: The project from now on.
    ///   - exponeaProjectMapping: The mapping from now on; nil for none.
    public func anonymize(
        exponeaIntegrationType: ExponeaProject, exponeaProjectMapping: [EventType: [ExponeaProject]]?
    ) {
        anonymize(exponeaProject: exponeaIntegrationType, projectMapping: exponeaProjectMapping)
    }

    /// Properties that every event gets; nil before `configure`.
    public var defaultProperties: [String: any JSONConvertible]? {
        get { (client?.defaultProperties).map { Dictionary($0) } }
        set {
            let properties = JSONObject((newValue ?? [:]).mapValues(\.jsonValue))
            perform { $0.defaultProperties = properties }
        }
    }

    /// Sends everything that waits, now.
    ///
    /// - Parameter completion: Called when that is done.
    public func flushData(completion: (@Sendable (FlushResult) -> Void)? = nil) {
        perform { client in
            Task {
                let result = await client.flush()
                completion?(result)
            }
        }
    }
}
