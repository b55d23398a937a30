internal import CountersignCore
internal import CountersignDelivery
internal import CountersignLocations
public import Foundation

/// The result of one request to `refreshUrl`. Never log `response`, which has tokens. The description has only the
/// names of the response's members.
public struct AuthorizationEvent: CustomStringConvertible, CustomReflectable {
    /// The domain of `error`. The code of `error` is `status`.
    public static let errorDomain = "BGGeo.Authorization"

    /// True if a new access token was received and stored.
    public let isSuccess: Bool
    /// The status of the response; 0 without a response.
    public let status: Int
    /// The JSON object of the response, which holds tokens; empty without a response.
    public let response: [String: Any]
    /// The error, with the server's message if present; nil on success.
    public let error: NSError?

    init(_ event: CountersignLocations.AuthorizationEvent) {
        isSuccess = event.isSuccess
        status = event.status
        response = plain(event.response)
        error = event.error.map { problem in
            let words = [problem, event.errorDescription].compactMap(\.self).joined(separator: ": ")
            return NSError(
                domain: Self.errorDomain, code: event.status, userInfo: [NSLocalizedDescriptionKey: words])
        }
    }

    /// The status, the error and the names of the response's members, without values.
    public var description: String {
        "AuthorizationEvent(status: \(status), response: \(response.keys.sorted()), "
            + "error: \(error?.localizedDescription ?? "none"))"
    }

    /// Keeps the tokens out of `dump`: the only child is `description`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// The result of one upload.
public struct HttpEvent: Sendable {
    /// True for a status from 200 to 299, unless the response is an HTML document (see `HttpConfig.acceptsPages`).
    public let isSuccess: Bool
    /// The status; 0 without a response.
    public let statusCode: Int
    /// The body of the response.
    public let responseText: String
    /// The error; nil on success.
    public let error: String?

    init(_ event: UploadEvent) {
        isSuccess = event.isSuccess
        statusCode = event.status
        responseText = event.responseText
        error = event.error
    }
}

/// A recorded location.
public struct LocationEvent: Sendable {
    /// The coordinates.
    public struct Coords: Sendable {
        /// Degrees north.
        public let latitude: Double
        /// Degrees east.
        public let longitude: Double
        /// Horizontal accuracy in metres; -1 if unknown.
        public let accuracy: Double
        /// Metres above the sea; -1 if unknown.
        public let altitude: Double
        /// Direction of travel in degrees clockwise from north; -1 if unknown.
        public let heading: Double
        /// Metres per second; -1 if unknown.
        public let speed: Double
    }

    /// The record's id.
    public let uuid: String
    /// The record's timestamp as text: a date and time, or milliseconds since 1970.
    public let timestamp: String
    /// The coordinates.
    public let coords: Coords
    /// Whether the device moves.
    public let isMoving: Bool
    /// Total distance travelled, in metres.
    public let odometer: Double
    /// The reason of the record, such as `motionchange`; nil for a regular record.
    public let event: String?

    private let members: JSONObject

    init(_ members: JSONObject) {
        self.members = members
        func text(_ value: JSONValue?) -> String? {
            if case .integer(let number) = value { "\(number)" } else { value?.string }
        }
        func coordinate(_ name: String) -> Double { members["coords"]?[name]?.double ?? -1 }
        uuid = text(members["uuid"]) ?? ""
        timestamp = text(members["timestamp"]) ?? ""
        coords = Coords(
            latitude: coordinate("latitude"), longitude: coordinate("longitude"),
            accuracy: coordinate("accuracy"), altitude: coordinate("altitude"),
            heading: coordinate("heading"), speed: coordinate("speed"))
        isMoving = members["is_moving"] == true
        odometer = max(0, members["odometer"]?.double ?? 0)
        event = text(members["event"])
    }

    /// The record as JSON, without the effect of `PersistenceConfig.locationTemplate`.
    ///
    /// - Returns: Values of the types that `JSONSerialization` returns.
    public func toDictionary() -> [String: Any] { plain(members) }
}
