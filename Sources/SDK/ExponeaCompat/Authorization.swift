/// What opens a project.
///
/// Its description leaves the key out.
public enum Authorization: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// Nothing, which no endpoint takes: configuration fails.
    case none
    /// The project's API key for public access.
    case token(String)

    var apiKey: String {
        switch self {
        case .none: ""
        case .token(let key): key
        }
    }

    /// What it is, never the key.
    public var description: String {
        switch self {
        case .none: "No Authorization"
        case .token: "Token Authorization (token redacted)"
        }
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var debugDescription: String { description }

    /// A mirror without children, so that `dump` shows nothing either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
