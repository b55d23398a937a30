public import Foundation

/// A project of Bloomreach Engagement, with its server and API key. The description omits the API key.
public struct BloomreachProject: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// The URL of the vendor's servers.
    public static let defaultBaseURL = "https://api.exponea.com"

    /// The project's token: letters, digits and `-`.
    public let token: String
    /// The API key for public access, without `Token `. Printable ASCII.
    public let apiKey: String
    /// The server, `https` in production; a trailing `/` is ignored.
    public let baseURL: URL

    /// Creates a project.
    ///
    /// - Parameters:
    ///   - token: The project's token.
    ///   - apiKey: The API key.
    ///   - baseURL: The server; nil for the vendor's.
    /// - Throws: `CountersignError` with `invalidConfiguration` if an argument is invalid.
    public init(token: String, apiKey: String, baseURL: String? = nil) throws(CountersignError) {
        guard !token.isEmpty, token.utf8.allSatisfy({ $0.isASCIIAlphanumeric(or: "-") }) else {
            throw CountersignError(
                .invalidConfiguration, "the project token must be letters, digits and '-', and not empty")
        }
        guard SignedToken.accessToken(apiKey) != nil else {
            throw CountersignError(
                .invalidConfiguration,
                "authorization must be the project's API key: printable ASCII, not empty")
        }
        let url = URL(string: baseURL ?? Self.defaultBaseURL)
        if let problem = url?.endpointProblem {
            throw CountersignError(.invalidConfiguration, "the base URL \(problem)")
        }
        guard let url else { throw CountersignError(.invalidConfiguration, "the base URL is not a URL") }
        self.token = token
        self.apiKey = apiKey
        self.baseURL = url
    }

    /// Token and server.
    public var description: String { "BloomreachProject(\(token) at \(baseURL.absoluteString))" }

    /// Keeps the API key out of `dump`: the only child is `description`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
