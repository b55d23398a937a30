internal import CountersignJSON

/// An unverified compact JWS. Use it to display tokens, never for decisions; ``VerifiedClaims`` are verified.
public struct CompactJWS: Sendable {
    /// The maximum size of a token in bytes.
    public static let maximumBytes = 8192
    static let maximumDepth = 32
    private static let types = ["jwt", "at+jwt"].map { Array($0.utf8) }

    /// The decoded header: JSON in UTF-8.
    public let header: [UInt8]
    /// The decoded payload. JSON for a JWT.
    public let payload: [UInt8]
    /// The decoded signature.
    public let signature: [UInt8]
    /// The header's `alg`; nil if it is absent or not a string.
    public let algorithm: String?
    /// The header's `kid`; nil if it is absent or not a string.
    public let keyID: String?
    /// The header's `typ`; nil if it is absent.
    public let type: String?

    /// Parses a token in compact form without verifying it. As strict as ``TokenVerifier``, but also accepts `at+jwt`.
    ///
    /// - Parameter text: Three parts in canonical base64url, joined by dots.
    /// - Throws: ``JOSEError`` with code `malformedToken`.
    public init(parsing text: String) throws(JOSEError) {
        let bytes = Array(text.utf8)
        guard bytes.count <= Self.maximumBytes else {
            throw JOSEError(.malformedToken, "the token is longer than 8 KiB")
        }
        var problem = "the token has not exactly three parts"
        let parts: ([UInt8], [UInt8], [UInt8])? = bytes.withUnsafeBufferPointer { token in
            guard let form = CompactForm(token) else { return nil }
            problem = "a part of the token is not base64url without padding"
            return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: bytes.count + 1) { scratch in
                scratch.baseAddress.flatMap { form.decode(token, scratch: $0) }
                    .map { (Array($0.header), Array($0.payload), Array($0.signature)) }
            }
        }
        guard let parts else { throw JOSEError(.malformedToken, problem) }
        (header, payload, signature) = parts
        let parser = StrictJSONParser(
            maximumBytes: Self.maximumBytes, maximumDepth: Self.maximumDepth)
        let fields = try? parser.parse(bytes: parts.0) { header in
            (
                HeaderRules.problems(of: header, types: Self.types), header["alg"]?.string,
                header["kid"]?.string,
                header["typ"]?.string
            )
        }
        guard let fields else {
            throw JOSEError(
                .malformedToken, "the header is not a JSON object in UTF-8 without duplicate members")
        }
        if let first = fields.0.first { throw JOSEError(.malformedToken, first) }
        (_, algorithm, keyID, type) = fields
    }
}

extension CompactJWS: CustomStringConvertible {
    /// Only the algorithm: a token is a credential.
    public var description: String { "CompactJWS(alg: \(algorithm ?? "none given"))" }
}
