internal import Foundation

/// The query of a request, as `name=value` pairs joined by `&`.
package enum QueryString {
    private static let longest = 1_024

    /// The first value of a name, percent-decoded; nil when it does not exist, cannot be decoded or is longer than any that
    /// means something.
    package static func value(of name: String, in query: String?) -> String? {
        for pair in (query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts[0] == name else { continue }
            guard parts.count > 1 else { return "" }
            return parts[1].utf8.count <= longest ? String(parts[1]).removingPercentEncoding : nil
        }
        return nil
    }
}
