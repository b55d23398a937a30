/// The kind of an event, named as in Segment's public HTTP API.
public struct EventKind: RawRepresentable, Hashable, Sendable, Codable {
    /// The word on the wire, such as `track`.
    public let rawValue: String

    /// Creates a kind. A gateway rejects unknown kinds.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public static func == (left: Self, right: Self) -> Bool { left.rawValue == right.rawValue }
    package static func != (left: Self, right: Self) -> Bool { !(left == right) }
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }

    /// A user did something.
    public static let track = EventKind(rawValue: "track")
    /// The identity and traits of a user.
    public static let identify = EventKind(rawValue: "identify")
    /// A user looked at a page of a web site.
    public static let page = EventKind(rawValue: "page")
    /// A user looked at a screen of an app.
    public static let screen = EventKind(rawValue: "screen")
    /// A user belongs to a group.
    public static let group = EventKind(rawValue: "group")
    /// Two ids belong to one user.
    public static let alias = EventKind(rawValue: "alias")

    /// The location of a device. Only the gateway's endpoint for locations creates it.
    public static let location = EventKind(rawValue: "location")

    package static let all: [EventKind] = [.track, .identify, .page, .screen, .group, .alias]
}
