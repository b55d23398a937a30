internal import CountersignCore
internal import CountersignTransport
package import Foundation

/// A token that an app's backend signed for one user (a compact JWS, RFC 7515).
///
/// It describes itself without its text, so that a log line or an error that holds one gives nothing away. `rawValue` is
/// the only way to the text.
public struct SignedToken: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// The token itself. It is a credential: never log it.
    public let rawValue: String

    /// Takes a token.
    ///
    /// - Parameter text: The token exactly as the backend made it, up to 16 KiB. Nil comes back for an empty text and for
    ///   one with a character that cannot stand in a header field (a space, CR, LF, NUL, anything that is not ASCII).
    public init?(_ text: String) {
        let utf8 = text.utf8
        guard !utf8.isEmpty, utf8.count <= 16_384, utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return nil
        }
        rawValue = text
    }

    /// When the token says that it expires (its `exp` claim), in seconds since 1970; nil if that cannot be read.
    ///
    /// The signature is not checked: use it only to ask for a new token in time.
    package var expiresAt: TimeInterval? {
        struct Claims: Decodable { let exp: Double? }
        return claims.flatMap { try? JSONDecoder().decode(Claims.self, from: $0) }?.exp
    }

    /// The claims; nil if they cannot be read. The signature is not checked.
    var claimsObject: JSONObject? {
        claims.flatMap { JSONDocument.object(Array($0)) }
    }

    /// The claims as the token has them; nil if they cannot be found. The signature is not checked.
    package var claims: Data? {
        let parts = rawValue.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var base64 = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(
            of: "_", with: "/")
        base64 += String(repeating: "=", count: (4 - base64.count % 4) % 4)
        return Data(base64Encoded: base64)
    }

    /// The length, never the text.
    public var description: String { "SignedToken(\(rawValue.utf8.count) bytes, redacted)" }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var debugDescription: String { description }

    /// A mirror without children, so that `dump` shows nothing either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension SignedToken {
    /// An access token of any kind: printable ASCII, spaces inside included, as shared access signatures have them.
    package static func accessToken(_ text: String) -> SignedToken? {
        let utf8 = text.utf8
        guard !utf8.isEmpty, utf8.count <= 16_384, utf8.allSatisfy({ (0x20...0x7E).contains($0) }),
            utf8.first != 0x20, utf8.last != 0x20
        else { return nil }
        return SignedToken(verified: text)
    }

    private init(verified text: String) {
        rawValue = text
    }
}
