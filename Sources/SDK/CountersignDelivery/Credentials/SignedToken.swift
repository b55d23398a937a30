internal import CountersignCore
internal import CountersignTransport
package import Foundation

/// A token that an app's backend signed for one user (a compact JWS, RFC 7515).
///
/// Its description is redacted, so that logs and errors do not reveal it. Only `rawValue` returns the text.
public struct SignedToken: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// The token itself. It is a credential: never log it.
    public let rawValue: String

    /// Creates a token from its text.
    ///
    /// - Parameter text: The token exactly as the backend created it. Returns nil if the text is empty, longer than
    ///   16 KiB, or has a character other than visible ASCII (such as a space or a line break). Verifies nothing else.
    public init?(_ text: String) {
        let utf8 = text.utf8
        guard !utf8.isEmpty, utf8.count <= 16_384, utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return nil
        }
        rawValue = text
    }

    /// The `exp` claim, in seconds since 1970; nil if unreadable. The signature is not verified: use `exp` only to get
    /// a new token in time.
    package var expiresAt: TimeInterval? { claimsObject?["exp"]?.double }

    /// The claims; nil if the payload is not a JSON object. The signature is not verified.
    var claimsObject: JSONObject? { claims.flatMap { JSONDocument.object(Array($0)) } }

    /// The decoded payload; nil without three parts or if it is not Base64url. The signature is not verified.
    package var claims: Data? {
        let parts = rawValue.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var base64 = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(
            of: "_", with: "/")
        base64 += String(repeating: "=", count: (4 - base64.count % 4) % 4)
        return Data(base64Encoded: base64)
    }

    /// The length of the token, without its text.
    public var description: String { "SignedToken(\(rawValue.utf8.count) bytes, redacted)" }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var debugDescription: String { description }

    /// A mirror without children, so that `dump` does not reveal the token.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension SignedToken {
    /// An access token of any kind: printable ASCII, with spaces, which shared access signatures contain.
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
