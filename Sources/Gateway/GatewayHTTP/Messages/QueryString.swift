internal import CountersignCore
internal import Foundation

package enum QueryString {
    /// The maximum length of an encoded value: 512 bytes as `%XX`, and some.
    private static let longest = 2_048

    /// Percent-decoded, with plus signs as spaces. Nil if the value is missing, malformed or too long.
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
