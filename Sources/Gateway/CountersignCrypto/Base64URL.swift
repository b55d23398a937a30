/// Canonical base64url without padding, as JOSE uses it (RFC 7515, section 2).
package enum Base64URL {
    /// Lookup tables of 256 words for each position in a group of four. Bytes outside the alphabet map to `invalid`.
    private static let tables: Tables = Tables()
    private static let invalid: UInt32 = 0xFF00_0000
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    private struct Tables: @unchecked Sendable {
        // Written once during initialization, never freed.
        let words: UnsafePointer<UInt32>

        init() {
            let words = UnsafeMutablePointer<UInt32>.allocate(capacity: 1024)
            words.initialize(repeating: invalid, count: 1024)
            for (value, character) in alphabet.enumerated() {
                for place in 0..<4 {
                    words[place * 256 + Int(character)] = UInt32(value) << UInt32(18 - 6 * place)
                }
            }
            self.words = UnsafePointer(words)
        }
    }

    package static func decodedCount(_ count: Int) -> Int { count / 4 * 3 + max(0, count % 4 - 1) }

    /// Returns the number of bytes written to `output`, which must have space for `decodedCount` bytes. Returns nil for
    /// a character outside the alphabet, such as white space or padding, for an impossible length, and for non-zero
    /// unused bits in the last character.
    package static func decode(
        _ text: UnsafeBufferPointer<UInt8>, into output: UnsafeMutablePointer<UInt8>
    ) -> Int? {
        let table = tables.words
        let rest = text.count & 3
        if rest == 1 { return nil }
        guard var input = text.baseAddress else { return 0 }
        var target = output
        var seen: UInt32 = 0
        for _ in 0..<(text.count >> 2) {
            let word =
                table[Int(input[0])] | table[256 + Int(input[1])] | table[512 + Int(input[2])]
                | table[768 + Int(input[3])]
            seen |= word
            target[0] = UInt8(truncatingIfNeeded: word >> 16)
            target[1] = UInt8(truncatingIfNeeded: word >> 8)
            target[2] = UInt8(truncatingIfNeeded: word)
            input += 4
            target += 3
        }
        if rest >= 2 {
            var word = table[Int(input[0])] | table[256 + Int(input[1])]
            if rest == 3 { word |= table[512 + Int(input[2])] }
            seen |= word
            target[0] = UInt8(truncatingIfNeeded: word >> 16)
            target += 1
            if rest == 3 {
                target[0] = UInt8(truncatingIfNeeded: word >> 8)
                target += 1
            }
            // Unused bits must be zero. Otherwise several texts would decode to the same bytes.
            if word & (rest == 2 ? 0xFFFF : 0xFF) != 0 { return nil }
        }
        return seen & invalid == 0 ? target - output : nil
    }

    package static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        let capacity = decodedCount(text.count)
        // All threads share the storage of the empty array, so its count must not be set.
        guard capacity > 0 else { return text.isEmpty ? [] : nil }
        var valid = false
        let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            guard let base = buffer.baseAddress, let written = decode(text, into: base) else { return }
            (count, valid) = (written, true)
        }
        return valid ? bytes : nil
    }

    package static func decode(_ text: String) -> [UInt8]? {
        Array(text.utf8).withUnsafeBufferPointer { decode($0) }
    }

    package static func encode(_ bytes: [UInt8], to output: inout [UInt8]) {
        bytes.withUnsafeBytes { encode($0) { output.append($0) } }
    }

    package static func encode(_ bytes: [UInt8]) -> String {
        bytes.withUnsafeBytes { encode($0) }
    }

    package static func encode(_ bytes: UnsafeRawBufferPointer) -> String {
        String(unsafeUninitializedCapacity: (bytes.count * 4 + 2) / 3) { output in
            var count = 0
            encode(bytes) { character in
                output[count] = character
                count += 1
            }
            return count
        }
    }

    @inline(__always)
    private static func encode(_ bytes: UnsafeRawBufferPointer, _ put: (UInt8) -> Void) {
        var index = 0
        while index < bytes.count {
            let left = min(3, bytes.count - index)
            var word = UInt32(bytes[index]) << 16
            if left > 1 { word |= UInt32(bytes[index + 1]) << 8 }
            if left > 2 { word |= UInt32(bytes[index + 2]) }
            for place in 0...left { put(alphabet[Int(word >> UInt32(18 - 6 * place)) & 63]) }
            index += left
        }
    }
}
