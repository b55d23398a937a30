/// Base32 (RFC 4648, section 6) without padding.
package enum Base32 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    package static func encode(_ bytes: [UInt8]) -> String {
        var output: [UInt8] = []
        var buffer = 0
        var bits = 0
        for byte in bytes {
            buffer = (buffer << 8 | Int(byte)) & 0xFFFF
            bits += 8
            while bits >= 5 {
                bits -= 5
                output.append(alphabet[buffer >> bits & 31])
            }
        }
        if bits > 0 { output.append(alphabet[buffer << (5 - bits) & 31]) }
        return String(decoding: output, as: UTF8.self)
    }
}
