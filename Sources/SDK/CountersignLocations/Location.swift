public import CountersignCore
public import Foundation

/// The location of a device at one time.
///
/// Unknown values are nil, and -1 in JSON.
public struct Location: Sendable, Hashable {
    /// Degrees north, -90 to 90.
    public var latitude: Double
    /// Degrees east, -180 to 180.
    public var longitude: Double
    /// The time of the location.
    public var timestamp: Date
    /// The radius of uncertainty, in metres.
    public var accuracy: Double?
    /// Metres above the sea.
    public var altitude: Double?
    /// The uncertainty of the altitude, in metres.
    public var altitudeAccuracy: Double?
    /// Metres per second.
    public var speed: Double?
    /// Degrees from north, clockwise.
    public var heading: Double?
    /// The total distance travelled, in metres.
    public var odometer: Double = 0
    /// Whether the device is moving.
    public var isMoving: Bool = false
    /// The reason for the record, such as `motionchange`; nil for an ordinary one.
    public var event: String?
    /// Further members.
    public var extras: JSONObject = [:]

    /// Makes a location.
    ///
    /// - Parameters:
    ///   - latitude: Degrees north, -90 to 90.
    ///   - longitude: Degrees east, -180 to 180.
    ///   - timestamp: The time of the location.
    public init(latitude: Double, longitude: Double, timestamp: Date) {
        self.latitude = latitude
        self.longitude = longitude
        self.timestamp = timestamp
    }

    /// The location in the default shape. `LocationRecord` adds the `uuid` and formats the timestamp.
    var record: JSONObject {
        func number(_ value: Double?) -> JSONValue { .number(value ?? -1) }
        var record: JSONObject = [
            "timestamp": .number(timestamp.timeIntervalSince1970 * 1_000), "is_moving": .bool(isMoving),
            "odometer": .number(odometer),
            "coords": [
                "latitude": .number(latitude), "longitude": .number(longitude), "accuracy": number(accuracy),
                "altitude": number(altitude), "altitude_accuracy": number(altitudeAccuracy),
                "speed": number(speed), "heading": number(heading),
            ],
            "activity": ["type": "unknown", "confidence": 0],
            "battery": ["level": -1, "is_charging": false],
            "extras": .object(extras),
        ]
        if let event { record["event"] = .string(event) }
        return record
    }
}

/// A location that is valid and complete, before a template is applied.
struct LocationRecord {
    let uuid: String
    /// In the default shape, for the app.
    let object: JSONObject
    /// Whether the timestamp cannot be read. It is then sent unchanged, because the current time would be wrong.
    let hasUnreadableTimestamp: Bool

    /// Adds missing members. Throws `invalidLocation` without coordinates within their limits.
    init(
        _ given: JSONObject, settings: LocationConfiguration.Persistence, now: Date
    ) throws(CountersignError) {
        guard case .object(let coordinates) = given["coords"], let latitude = coordinates["latitude"]?.double,
            let longitude = coordinates["longitude"]?.double, (-90...90).contains(latitude),
            (-180...180).contains(longitude)
        else {
            throw CountersignError(
                .invalidLocation, "coords.latitude and coords.longitude must be numbers within their limits")
        }
        var object = given
        if let text = given["uuid"]?.string, !text.isEmpty {
            uuid = text
        } else {
            uuid = UUIDv7.make(at: now)
            object["uuid"] = .string(uuid)
        }
        let timestamp = given["timestamp"] ?? .null
        let instant = timestamp == .null ? Milliseconds(now).count : Self.milliseconds(timestamp)
        hasUnreadableTimestamp = instant == nil
        if let instant {
            object["timestamp"] =
                settings.timestampFormat == .epoch
                ? .integer(instant) : .string(RFC3339.text(milliseconds: instant))
        }
        if !settings.extras.isEmpty {
            var extras = settings.extras
            if let own = given["extras"]?.object { extras.merge(own) { _, own in own } }
            object["extras"] = .object(extras)
        }
        self.object = object.limited()
    }

    /// Adds facts as `extras.context`, unless the app's extras have this member.
    func carrying(_ facts: JSONValue) -> JSONObject {
        var object = object
        var extras = object["extras"]?.object ?? [:]
        extras["context"] = extras["context"] ?? facts
        object["extras"] = .object(extras)
        return object
    }

    /// Reads a time with an offset, or a number of milliseconds since 1970.
    private static func milliseconds(_ timestamp: JSONValue) -> Int64? {
        let found =
            switch timestamp {
            case .string(let text): RFC3339.milliseconds(text, isLenient: true)
            default: timestamp.double.flatMap { $0.isNaN ? nil : Milliseconds($0).count }
            }
        return found.flatMap { RFC3339.instants.contains($0) ? $0 : nil }
    }
}
