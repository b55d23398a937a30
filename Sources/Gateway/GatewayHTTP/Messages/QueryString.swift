internal import CountersignCore
internal import Foundation

package enum QueryString {
    /// The maximum length of an encoded value in bytes. An id of 512 bytes, encoded as `%XX`, takes 1,536.
    private static let longest = 2_048

    /// Returns the value percent-decoded, with plus signs as spaces; nil if it is missing, malformed or too long.
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
