internal import Foundation

/// The query of a request, as `name=value` pairs joined by `&`.
enum QueryString {
    /// The first value of a name, percent-decoded; nil when it is not there or cannot be decoded.
    static func value(of name: String, in query: String?) -> String? {
        for pair in (query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts[0] == name else { continue }
            return parts.count > 1 ? String(parts[1]).removingPercentEncoding : ""
        }
        return nil
    }
}
