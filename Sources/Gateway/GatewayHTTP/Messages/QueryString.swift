internal import CountersignCore
internal import Foundation

/// The query of a request, as `name=value` pairs joined by `&`.
package enum QueryString {
    /// The maximum length of an encoded value: 512 bytes as `%XX`, and some.
    private static let longest = 2_048

    /// The first value of a name, percent-decoded, with plus signs as spaces. Returns nil if the name is
    /// missing or the value is malformed or too long.
    package static func value(of name: String, in query: String?) -> String? {
        for pair in (query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts[0] == name else { continue }
            guard parts.count > 1 else { return "" }
            guard parts[1].utf8.count <= longest else { return nil }
            return parts[1].replacing("+", with: "%20").removingPercentEncoding
        }
        return nil
    }
}
