internal import Countersign
internal import CountersignCore
internal import Foundation

/// One call by name, with JSON in and out.
struct Command: Sendable {
    let client: BloomreachClient
    let arguments: [String: JSONValue]

    private struct Mistake: Error {
        let detail: String
    }

    // MARK: Recording

    /// Returns the result; nil if `method` does not record.
    func record(_ method: String) -> JSONValue? {
        do throws(Mistake) {
            switch method {
            case "identifyCustomer":
                client.identifyCustomer(
                    try texts("customerIds") ?? [:], properties: try object("properties"),
                    timestamp: try number("timestamp"))
            case "trackCustomer":
                client.trackCustomer(properties: try object("properties"), timestamp: try number("timestamp"))
            case "trackEvent":
                client.trackEvent(
                    try required("eventType"), properties: try object("properties"),
                    timestamp: try number("timestamp"))
            case "trackCampaignClick":
                guard let url = URL(string: try required("url")) else {
                    throw Mistake(detail: "url must be a URL")
                }
                client.trackCampaignClick(url, timestamp: try number("timestamp"))
            case "anonymize": client.anonymize()
            case "startSession": client.startSession()
            case "endSession": client.endSession()
            case "trackPushToken":
                let token: JSONValue = arguments["token"] ?? .null
                switch token {
                case .string(let token): client.trackPushToken(token)
                case .null: client.trackPushToken(nil)
                default: throw Mistake(detail: "token must be a string")
                }
            case "customerIds": return ["value": .object(client.customerIDs.mapValues { .string($0) })]
            default: return nil
            }
            return ["value": .null]
        } catch {
            return Self.failure("invalid_argument", error.detail)
        }
    }

    // MARK: Asking

    func ask(_ method: String) async -> JSONValue {
        do {
            return ["value": try await value(method)]
        } catch let error as CountersignError {
            return ["error": Self.json(error)]
        } catch let error as Mistake {
            return Self.failure("invalid_argument", error.detail)
        } catch {
            return Self.failure("failed", "\(error)")
        }
    }

    private func value(_ method: String) async throws -> JSONValue {
        switch method {
        case "fetchAttributes":
            return .array(
                try await client.fetchAttributes(try queries()).map { attribute in
                    [
                        "success": .bool(attribute.isSuccess),
                        "error": attribute.error.map { .string($0) } ?? .null, "value": attribute.value,
                    ]
                })
        case "fetchRecommendations":
            return .array(try await client.fetchRecommendations(try options()).map(\.raw))
        case "fetchConsents": return .array(try await client.fetchConsents().map(\.raw))
        case "fetchInAppMessages": return .array(try await client.fetchInAppMessages().map(\.raw))
        case "fetchAppInbox": return .array(try await client.fetchAppInbox().map(\.json))
        case "markAppInboxAsRead": try await client.markAsRead(messageID: try required("messageId"))
        case "sendSelfCheck": try await client.sendSelfCheck(pushToken: try required("pushToken"))
        case "flush":
            let result = await client.flush()
            return [
                "delivered": .integer(Int64(result.delivered)), "queued": .integer(Int64(result.queued)),
                "ending": .string(result.ending.rawValue),
            ]
        case "snapshot":
            let snapshot = await client.snapshot()
            return [
                "queued": .integer(Int64(snapshot.queued)), "unsaved": .integer(Int64(snapshot.unsaved)),
                "recorded": .integer(Int64(snapshot.recorded)), "sent": .integer(Int64(snapshot.sent)),
                "quarantined": .integer(Int64(snapshot.quarantined)),
                "dropped": .integer(Int64(snapshot.dropped)),
                "last_error": snapshot.lastError.map { .string($0) } ?? .null,
            ]
        default: throw Mistake(detail: "there is no method \(method)")
        }
        return .null
    }

    private func queries() throws(Mistake) -> [CustomerAttributeQuery] {
        guard case .array(let elements) = arguments["attributes"] else {
            throw Mistake(detail: "attributes must be a list")
        }
        var queries: [CustomerAttributeQuery] = []
        for element in elements {
            switch element {
            case .object(let members):
                switch (members["type"], members["property"], members["id"]) {
                case (.string("property"), .string(let name), _): queries.append(.property(name))
                case (.string("id"), _, .string(let name)): queries.append(.id(name))
                default: throw Mistake(detail: "attributes must be of type property or id")
                }
            default: throw Mistake(detail: "attributes must be objects")
            }
        }
        return queries
    }

    private func options() throws(Mistake) -> RecommendationOptions {
        var options = RecommendationOptions(id: try required("id"))
        options.fillWithRandom = arguments["fillWithRandom"] == true
        options.size = Int(try number("size") ?? 10)
        options.noTrack = arguments["noTrack"] == true
        options.items = try texts("items")
        if case .array(let names) = arguments["catalogAttributesWhitelist"] {
            options.catalogAttributesWhitelist = names.compactMap { name in
                if case .string(let text) = name { text } else { nil }
            }
        }
        return options
    }

    // MARK: Arguments

    private func required(_ name: String) throws(Mistake) -> String {
        guard case .string(let text) = arguments[name], !text.isEmpty else {
            throw Mistake(detail: "\(name) must be a text that is not empty")
        }
        return text
    }

    private func number(_ name: String) throws(Mistake) -> Double? {
        switch arguments[name] {
        case nil, .null: return nil
        case .integer(let value): return Double(value)
        case .number(let value): return value
        default: throw Mistake(detail: "\(name) must be a number")
        }
    }

    private func object(_ name: String) throws(Mistake) -> [String: JSONValue] {
        switch arguments[name] {
        case nil, .null: return [:]
        case .object(let members): return members
        default: throw Mistake(detail: "\(name) must be an object")
        }
    }

    private func texts(_ name: String) throws(Mistake) -> [String: String]? {
        guard arguments[name] != nil else { return nil }
        var texts: [String: String] = [:]
        for (key, value) in try object(name) {
            guard case .string(let text) = value else { throw Mistake(detail: "\(name) must hold texts") }
            texts[key] = text
        }
        return texts
    }

    // MARK: Errors

    static func failure(_ code: String, _ detail: String) -> JSONValue {
        ["error": ["code": .string(code), "detail": .string(detail), "retryable": false]]
    }

    static func json(_ error: CountersignError) -> JSONValue {
        var members: [String: JSONValue] = [
            "code": .string(error.code.rawValue), "detail": .string(error.detail),
            "retryable": .bool(error.isWorthRetrying),
        ]
        if let status = error.status { members["status"] = .integer(Int64(status)) }
        if let code = error.authCode { members["auth_code"] = .integer(Int64(code.rawValue)) }
        if let seconds = error.retryAfter { members["retry_after"] = .number(seconds) }
        if let token = error.projectToken { members["project_token"] = .string(token) }
        return .object(members)
    }
}
