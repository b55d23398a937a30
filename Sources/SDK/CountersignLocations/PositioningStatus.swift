/// The permission to use Core Location, and the error that Core Location reports.
public struct PositioningStatus: Sendable, Hashable {
    /// The permission granted by the user or the device management. The app requests it.
    public struct Authorization: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `when_in_use`.
        public let rawValue: String

        /// Creates a value from its word. Words that this version does not define are allowed.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The app has not requested permission yet.
        public static let notDetermined = Authorization(rawValue: "not_determined")
        /// The user cannot grant permission.
        public static let restricted = Authorization(rawValue: "restricted")
        /// The user has denied permission.
        public static let denied = Authorization(rawValue: "denied")
        /// While the app is in use.
        public static let whenInUse = Authorization(rawValue: "when_in_use")
        /// At any time.
        public static let always = Authorization(rawValue: "always")
        /// A status of Core Location that this version does not define.
        public static let unknown = Authorization(rawValue: "unknown")
    }

    /// The granted permission.
    public let authorization: Authorization
    /// False if the user allows an approximate location only.
    public let isPrecise: Bool
    /// The number of the `CLError`, -1 for another error, nil without one. After 0 (no location), updates continue.
    public let errorCode: Int?
}

extension PositioningStatus.Authorization {
    /// From the number of a `CLAuthorizationStatus`.
    init(status: Int32) {
        let known: [PositioningStatus.Authorization] = [
            .notDetermined, .restricted, .denied, .always, .whenInUse,
        ]
        self = known.indices.contains(Int(status)) ? known[Int(status)] : .unknown
    }
}

enum BackgroundModes {
    /// Whether `UIBackgroundModes` has `location`. iOS terminates an app that allows background updates without it.
    static func allowLocations(_ information: [String: Any]?) -> Bool {
        (information?["UIBackgroundModes"] as? [String])?.contains("location") == true
    }
}
