internal import CountersignBloomreach
internal import CountersignCore
internal import CountersignDelivery
internal import Foundation

/// Events and queries of a project of Bloomreach Engagement.
struct BloomreachMode: Mode {
    private let client: BloomreachClient

    init(settings: Arguments, callbacks: Callbacks) throws(CountersignError) {
        var configuration = try BloomreachConfiguration(map: settings.members)
        let provider = Provider(callbacks: callbacks, timeout: configuration.authorizationProviderTimeout)
        configuration.authorizationProvider = callbacks.provider == nil ? nil : .suspending(provider)
        configuration.log = try settings.configuration.log(callbacks)
        client = try BloomreachClient(configuration: configuration)
        client.onDeliveryFailure { error in
            callbacks.send(["event": "delivery_failure", "error": ErrorJSON.members(error)])
        }
    }

    private struct Provider: AsyncAuthorizationProvider {
        let callbacks: Callbacks
        let timeout: TimeInterval

        func authorizationToken() async throws -> String? {
            try await callbacks.token([:], within: timeout)
        }
    }

    // MARK: Calls

    func begin(
        _ method: String, _ arguments: Arguments, _ completion: @escaping Completion
    ) throws(CountersignError) -> Bool {
        switch method {
        case "identifyCustomer":
            client.identifyCustomer(
                try arguments.texts("customerIds") ?? [:],
                properties: try arguments.object("properties") ?? [:],
                timestamp: try arguments.number("timestamp"))
        case "trackCustomer":
            client.trackCustomer(
                properties: try arguments.object("properties") ?? [:],
                timestamp: try arguments.number("timestamp"))
        case "trackEvent":
            client.trackEvent(
                try arguments.required("eventType"), properties: try arguments.object("properties") ?? [:],
                timestamp: try arguments.number("timestamp"))
        case "trackCampaignClick":
            guard let url = URL(string: try arguments.required("url")) else {
                throw arguments.wrong("url", "a URL")
            }
            client.trackCampaignClick(url, timestamp: try arguments.number("timestamp"))
        case "anonymize": try anonymize(arguments)
        case "startSession": client.startSession()
        case "endSession": client.endSession()
        case "trackPushToken": client.trackPushToken(try arguments.string("token"))
        case "customerIds":
            completion(.success(.object(JSONObject(client.customerIDs.mapValues { .string($0) }))))
            return true
        default: return false
        }
        completion(.success(.null))
        return true
    }

    private func anonymize(_ arguments: Arguments) throws(CountersignError) {
        guard !arguments.members.isEmpty else { return client.anonymize() }
        let change = try BloomreachConfiguration(map: arguments.members)
        let hasMapping = arguments.members["projectMapping"] != nil
        client.anonymize(project: change.project, mapping: hasMapping ? change.projectMapping : nil)
    }

    func perform(_ method: String, _ arguments: Arguments) async throws(CountersignError) -> JSONValue? {
        switch method {
        case "fetchAttributes":
            return .array(
                try await client.fetchAttributes(try Self.queries(arguments)).map { attribute in
                    [
                        "success": .bool(attribute.isSuccess), "error": JSONValue(attribute.error),
                        "value": attribute.value,
                    ]
                })
        case "fetchConsents": return .array(try await client.fetchConsents().map(\.raw))
        case "fetchInAppMessages": return .array(try await client.fetchInAppMessages().map(\.raw))
        case "fetchAppInbox": return .array(try await client.fetchAppInbox().map(\.json))
        case "markAppInboxAsRead":
            try await client.markAsRead(messageID: try arguments.required("messageId"))
        case "sendSelfCheck": try await client.sendSelfCheck(pushToken: try arguments.required("pushToken"))
        case "wipe": try await client.wipeData()
        case "flush": return await client.flush().json
        case "snapshot": return await client.snapshot().json
        case "quarantinedEvents": return .array(try await client.quarantinedEvents().map(\.json))
        case "requeueQuarantinedEvents": return JSONValue(try await client.requeueQuarantinedEvents())
        case "deleteQuarantinedEvents": return JSONValue(try await client.deleteQuarantinedEvents())
        default: return nil
        }
        return .null
    }

    func close() async { await client.close() }

    private static func queries(
        _ arguments: Arguments
    ) throws(CountersignError) -> [CustomerAttributeQuery] {
        guard let elements = try arguments.array("attributes") else {
            throw arguments.wrong("attributes", "a list")
        }
        var queries: [CustomerAttributeQuery] = []
        for element in elements {
            switch (element["type"], element["property"], element["id"]) {
            case ("property", .string(let name), _): queries.append(.property(name))
            case ("id", _, .string(let name)): queries.append(.id(name))
            default: throw arguments.wrong("attributes", "a list of objects of type property or id")
            }
        }
        return queries
    }
}
