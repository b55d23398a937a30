internal import CountersignCore
internal import CountersignLocations
public import Foundation

/// What came of one request to `refreshUrl`.
///
/// Printing it leaves the answer out. Printing `response` prints tokens: not in what leaves the device.
public struct AuthorizationEvent: CustomStringConvertible, CustomReflectable {
    /// The domain of `error`. Its code is the status.
    public static let errorDomain = "BGGeo.Authorization"

    /// True if there is a new access token.
    public let isSuccess: Bool
    /// The status of the answer; 0 if there was none.
    public let status: Int
    /// The answer's JSON object; empty if there was none. It holds tokens.
    public let response: [String: Any]
    /// What went wrong, with the server's words if it has any; nil on success.
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

    /// Status and error, and the names in the answer.
    public var description: String {
        "AuthorizationEvent(status: \(status), response: \(response.keys.sorted()), "
            + "error: \(error?.localizedDescription ?? "none"))"
    }

    /// The same, for `dump`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// One attempt to upload.
public struct HttpEvent: Sendable {
    /// True for a status from 200 to 299.
    public let isSuccess: Bool
    /// The status; 0 if there was no answer.
    public let statusCode: Int
    /// The answer's body.
    public let responseText: String
    /// What went wrong; nil on success.
    public let error: String?

    init(_ event: UploadEvent) {
        isSuccess = event.isSuccess
        statusCode = event.status
        responseText = event.responseText
        error = event.error
    }
}

/// A location that was recorded.
public struct LocationEvent: Sendable {
    /// Where.
    public struct Coords: Sendable {
        /// Degrees north.
        public let latitude: Double
        /// Degrees east.
        public let longitude: Double
        /// Metres that both may be wrong by; -1: not known.
        public let accuracy: Double
        /// Metres above the sea; -1: not known.
        public let altitude: Double
        /// Degrees from north; -1: not known.
        public let heading: Double
        /// Metres a second; -1: not known.
        public let speed: Double
    }

    /// The record's id.
    public let uuid: String
    /// When, as it stands in the record.
    public let timestamp: String
    /// Where.
    public let coords: Coords
    /// Whether the device moves.
    public let isMoving: Bool
    /// Metres travelled in all.
    public let odometer: Double
    /// Why it was recorded, such as `motionchange`; nil for an ordinary one.
    public let event: String?

    private let members: JSONObject

    init(_ members: JSONObject) {
        self.members = members
        var coordinates: JSONObject = [:]
        if case .object(let value) = members["coords"] { coordinates = value }
        func text(_ value: JSONValue?) -> String? {
            switch value {
            case .string(let text): text
            case .integer(let number): "\(number)"
            default: nil
            }
        }
        func number(_ value: JSONValue?) -> Double {
            switch value {
            case .integer(let number): Double(number)
            case .number(let number): number
            default: -1
            }
        }
        uuid = text(members["uuid"]) ?? ""
        timestamp = text(members["timestamp"]) ?? ""
        coords = Coords(
            latitude: number(coordinates["latitude"]), longitude: number(coordinates["longitude"]),
            accuracy: number(coordinates["accuracy"]), altitude: number(coordinates["altitude"]),
            heading: number(coordinates["heading"]), speed: number(coordinates["speed"]))
        isMoving = members["is_moving"] == true
        odometer = Swift.max(0, number(members["odometer"]))
        event = text(members["event"])
    }

    /// The record in the default shape.
    ///
    /// - Returns: As `JSONSerialization` would give it.
    public func toDictionary() -> [String: Any] { plain(members) }
}
