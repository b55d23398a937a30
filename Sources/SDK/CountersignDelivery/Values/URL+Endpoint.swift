package import Foundation

extension URL {
    /// Such as `has a query`; nil if the URL is valid as a server's base URL.
    package var endpointProblem: String? {
        switch scheme?.lowercased() {
        case "http", "https": break
        case nil: return "has no scheme, such as https:"
        case let other?: return "begins with \(other):, not with https: or http:"
        }
        if host?.isEmpty != false { return "has no host" }
        if user != nil || password != nil { return "has user info, which the SDK does not send" }
        if query != nil { return "has a query" }
        if fragment != nil { return "has a fragment" }
        return nil
    }
}
