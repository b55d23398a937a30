public import CountersignCore

/// Converts properties to JSON. Leaves out properties of unsupported types, with a warning in the log.
func eventProperties(_ values: [String: Any], log: CountersignLog?) -> JSONObject {
    var properties: JSONObject = [:]
    for (name, value) in values {
        properties[name] = JSONValue(any: value) { type in
            log?(
                .warning, "property dropped: it is neither a JSON value nor Encodable",
                ["property": name, "type": "\(type)"])
        }
    }
    return properties
}

extension CountersignClient {
    // MARK: Properties of other types

    /// Records an event and returns at once. Variables need no `JSONValue` around them: `["total": total]`.
    ///
    /// - Parameters:
    ///   - event: The event's name, such as `Order Completed`.
    ///   - properties: The event's properties: numbers, strings, booleans, dates (text in ISO 8601, UTC, with
    ///     milliseconds), decimals, `Data` (Base64 text), `UUID`, `URL`, optionals (nil is `null`), arrays, sets and
    ///     dictionaries of those, and the app's own `Encodable` types. A number that is not finite and a value that
    ///     cannot be encoded are `null`.
    public func track(_ event: String, properties: [String: any Encodable]) {
        track(event, properties: eventProperties(properties, log: log))
    }

    /// As `track(_:properties:)` with `Encodable` properties, for a dictionary whose values may be of any type.
    ///
    /// - Parameters:
    ///   - event: The event's name, such as `Order Completed`.
    ///   - properties: The event's properties. A value that is neither a JSON value nor `Encodable` is left out, or
    ///     `null` in an array, with a warning in the log.
    public func track(_ event: String, properties: [String: Any]) {
        track(event, properties: eventProperties(properties, log: log))
    }

    /// As `identify(userID:token:traits:)`, with traits of any `Encodable` type.
    ///
    /// - Parameters:
    ///   - userID: The ID in the app's own systems.
    ///   - token: The token from the app's backend; nil if the app has no token, or if a token provider returns it.
    ///   - traits: The user's traits, converted as by `track(_:properties:)`.
    public func identify(userID: String, token: String? = nil, traits: [String: any Encodable]) {
        identify(userID: userID, token: token, traits: eventProperties(traits, log: log))
    }

    /// As `identify(userID:token:traits:)`, for a dictionary whose values may be of any type.
    ///
    /// - Parameters:
    ///   - userID: The ID in the app's own systems.
    ///   - token: The token from the app's backend; nil if the app has no token, or if a token provider returns it.
    ///   - traits: The user's traits, converted as by `track(_:properties:)` with values of any type.
    public func identify(userID: String, token: String? = nil, traits: [String: Any]) {
        identify(userID: userID, token: token, traits: eventProperties(traits, log: log))
    }

    /// As `record(_:kind:properties:)`, with properties of any `Encodable` type.
    ///
    /// - Parameters:
    ///   - event: The event's name, or the name of the page or screen.
    ///   - kind: The kind of event.
    ///   - properties: The event's properties, converted as by `track(_:properties:)`.
    /// - Returns: The event's message ID.
    /// - Throws: `CountersignError` if the event was not stored in the queue.
    @discardableResult
    public nonisolated(nonsending) func record(
        _ event: String, kind: EventKind = .track, properties: [String: any Encodable]
    ) async throws(CountersignError) -> String {
        try await record(event, kind: kind, properties: eventProperties(properties, log: log))
    }

    /// As `record(_:kind:properties:)`, for a dictionary whose values may be of any type.
    ///
    /// - Parameters:
    ///   - event: The event's name, or the name of the page or screen.
    ///   - kind: The kind of event.
    ///   - properties: The event's properties, converted as by `track(_:properties:)` with values of any type.
    /// - Returns: The event's message ID.
    /// - Throws: `CountersignError` if the event was not stored in the queue.
    @discardableResult
    public nonisolated(nonsending) func record(
        _ event: String, kind: EventKind = .track, properties: [String: Any]
    ) async throws(CountersignError) -> String {
        try await record(event, kind: kind, properties: eventProperties(properties, log: log))
    }
}
