/// The authorization of a project. The description omits the key.
public enum Authorization: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// No authorization. Configuration fails, since every endpoint requires a key.
    case none
    /// The project's API key for public access.
    case token(String)

    var apiKey: String {
        switch self {
        case .none: ""
        case .token(let key): key
        }
    }

    /// The kind of authorization, never the key.
    public var description: String {
        switch self {
        case .none: "No Authorization"
        case .token: "Token Authorization (token redacted)"
        }
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var debugDescription: String { description }

    /// A mirror without children, so that `dump` does not show the key.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
