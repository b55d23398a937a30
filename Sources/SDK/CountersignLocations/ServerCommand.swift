internal import CountersignCore
internal import CountersignTransport

/// A command in a server's response: an element of the array `background_geolocation`, or the whole array.
struct ServerCommand: Equatable {
    /// The maximum number of commands in a response. Further commands are ignored.
    private static let maximumCount = 100

    let name: String
    let argument: JSONValue?

    /// Returns the commands of a response, in order. The response may have any status.
    static func all(in response: TransportResponse) -> [ServerCommand] {
        guard response.body.contains(UInt8(ascii: "{")),
            case .array(let elements) = JSONDocument.object(response.body)?["background_geolocation"]
        else { return [] }
        if case .string = elements.first { return ServerCommand(elements).map { [$0] } ?? [] }
        return elements.prefix(maximumCount).compactMap { element in
            switch element {
            case .array(let parts): ServerCommand(parts)
            default: nil
            }
        }
    }

    private init?(_ parts: [JSONValue]) {
        guard case .string(let name) = parts.first else { return nil }
        self.name = name
        argument = parts.count > 1 ? parts[1] : nil
    }

    /// Returns the changed settings. Nil, without any change, if `argument` is not an object, a value has a wrong
    /// type, or a setting must not change.
    static func apply(_ argument: JSONValue?, to http: LocationConfiguration.HTTP) -> LocationConfiguration
        .HTTP?
    {
        guard case .object(var members) = argument else { return nil }
        if let nested = members["http"]?.object {
            members["http"] = nil
            members.merge(nested) { _, nested in nested }
        }
        var http = http
        for (name, value) in members {
            switch (name, value) {
            case ("autoSync", .bool(let value)): http.autoSync = value
            case ("batchSync", .bool(let value)): http.batchSync = value
            case ("autoSyncThreshold", .integer(let value)): http.autoSyncThreshold = Int(clamping: value)
            case ("maxBatchSize", .integer(let value)): http.maxBatchSize = Int(clamping: value)
            default: return nil
            }
        }
        return http
    }
}
