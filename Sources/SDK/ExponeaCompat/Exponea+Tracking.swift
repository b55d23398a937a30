internal import CountersignDelivery
public import Foundation

extension Exponea {
    /// As `BloomreachClient.identifyCustomer(_:properties:timestamp:)`.
    ///
    /// - Parameters:
    ///   - customerIds: IDs such as `registered`. Numbers, booleans and dates are converted to strings. Null, infinite
    ///     numbers, arrays and objects are left out.
    ///   - properties: The customer's properties.
    ///   - timestamp: Time of the update, in seconds since 1970; nil for now.
    public func identifyCustomer(
        customerIds: [String: any JSONConvertible]?, properties: [String: any JSONConvertible] = [:],
        timestamp: Double? = nil
    ) {
        let ids = (customerIds ?? [:]).compactMapValues { id -> String? in
            switch id.jsonValue {
            case .string(let text): return text
            case .integer, .bool: return id.jsonValue.description
            case .number(let number): return number.isFinite ? "\(number)" : nil
            case .null, .array, .object: return nil
            }
        }
        let properties = JSONObject(properties.mapValues(\.jsonValue))
        perform { $0.identifyCustomer(ids, properties: properties, timestamp: timestamp) }
    }

    /// As `BloomreachClient.trackEvent(_:properties:timestamp:kind:)`.
    ///
    /// - Parameters:
    ///   - properties: The event's properties.
    ///   - timestamp: Time of the event, in seconds since 1970; nil for now.
    ///   - eventType: The event type. If nil, nothing is recorded.
    public func trackEvent(
        properties: [String: any JSONConvertible] = [:], timestamp: Double? = nil, eventType: String?
    ) {
        let properties = JSONObject(properties.mapValues(\.jsonValue))
        perform { $0.trackEvent(eventType ?? "", properties: properties, timestamp: timestamp) }
    }

    /// Records a payment.
    ///
    /// - Parameters:
    ///   - properties: The payment's properties.
    ///   - timestamp: Time of the payment, in seconds since 1970; nil for now.
    public func trackPayment(properties: [String: any JSONConvertible], timestamp: Double? = nil) {
        let properties = JSONObject(properties.mapValues(\.jsonValue))
        perform { $0.trackEvent("payment", properties: properties, timestamp: timestamp, kind: .payment) }
    }

    /// As `BloomreachClient.trackCampaignClick(_:timestamp:)`.
    ///
    /// - Parameters:
    ///   - url: The link that opened the app.
    ///   - timestamp: Time of the click, in seconds since 1970; nil for now.
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
    /// - Parameter token: The token in hexadecimal digits; nil when the user has revoked the permission.
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
    /// - Parameter deviceToken: The token passed to the app's delegate.
    public func handlePushNotificationToken(deviceToken: Data) { trackPushToken(deviceToken) }

    /// Replaces the customer by an anonymous one.
    public func anonymize() {
        perform { $0.anonymize() }
    }

    /// As `anonymize()`.
    ///
    /// - Parameter completion: Called after the attempt to send the earlier customer's data.
    public func anonymize(completion: (@Sendable () -> Void)?) {
        perform { client in
            client.anonymize()
            Task {
                await client.flush()
                completion?()
            }
        }
    }

    /// Stops the SDK, removes all data of this device, and permits another `configure`. Blocks on disk I/O.
    ///
    /// - Parameter completion: Called when all work has stopped.
    public func stopIntegration(completion: (@Sendable () -> Void)? = nil) {
        // Delete the data first, so that the next `configure` does not find it.
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

    /// Replaces the customer by an anonymous one, in another project.
    ///
    /// - Parameters:
    ///   - exponeaProject: The new project. If it is invalid, the reason is logged and nothing changes.
    ///   - projectMapping: The new mapping; nil for no mapping.
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
    ///   - exponeaIntegrationType: The new project.
    ///   - exponeaProjectMapping: The new mapping; nil for no mapping.
    public func anonymize(
        exponeaIntegrationType: ExponeaProject, exponeaProjectMapping: [EventType: [ExponeaProject]]?
    ) {
        anonymize(exponeaProject: exponeaIntegrationType, projectMapping: exponeaProjectMapping)
    }

    /// Properties added to events, except push tokens and campaign clicks; nil before `configure`.
    public var defaultProperties: [String: any JSONConvertible]? {
        get { (client?.defaultProperties).map { Dictionary($0) } }
        set {
            let properties = JSONObject((newValue ?? [:]).mapValues(\.jsonValue))
            perform { $0.defaultProperties = properties }
        }
    }

    /// Sends all waiting events now.
    ///
    /// - Parameter completion: Called when sending has ended.
    public func flushData(completion: (@Sendable (FlushResult) -> Void)? = nil) {
        perform { client in
            Task {
                let result = await client.flush()
                completion?(result)
            }
        }
    }
}
