/// The two forms of an ECDSA signature on P-256: r and s of 32 bytes each in a JWS (RFC 7518, section 3.4),
/// and DER in OpenSSL.
package enum ECDSASignature {
    package static let rawCount = 64
    package static let maximumDERCount = 72

    /// Returns the length of the DER form, or nil unless `raw` has 64 bytes with non-zero r and s. `output` must have
    /// space for 72 bytes.
    package static func writeDER(
        raw: UnsafeBufferPointer<UInt8>, to output: UnsafeMutablePointer<UInt8>
    ) -> Int? {
        guard raw.count == rawCount else { return nil }
        var length = 2
        for start in [0, 32] {
            var first = start
            while first < start + 32, raw[first] == 0 { first += 1 }
            guard first < start + 32 else { return nil }
            let padding = raw[first] >= 0x80 ? 1 : 0
            output[length] = DERReader.integer
            output[length + 1] = UInt8(start + 32 - first + padding)
            length += 2
            if padding == 1 {
                output[length] = 0
                length += 1
            }
            for index in first..<start + 32 {
                output[length] = raw[index]
                length += 1
            }
        }
        output[0] = DERReader.sequence
        output[1] = UInt8(length - 2)
        return length
    }

    /// Converts a signature made by OpenSSL.
    package static func raw(fromDER der: [UInt8]) -> [UInt8] {
        var outer = DERReader(der[...])
        var numbers = DERReader(outer.read(DERReader.sequence) ?? [])
        guard let r = numbers.readUnsigned(), let s = numbers.readUnsigned() else {
            preconditionFailure("OpenSSL writes DER")
        }
        return [r, s].flatMap { [UInt8](repeating: 0, count: 32 - $0.count) + $0 }
    }
}
