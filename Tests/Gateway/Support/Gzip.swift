import CZlib

/// Returns `times` copies of `bytes` in gzip format (RFC 1952). Compresses once, so that a bomb is cheap.
package func gzip(_ bytes: [UInt8], times: Int = 1) throws -> [UInt8] {
    var stream = z_stream()
    // Negative window bits: raw deflate without a header or checksum.
    guard
        deflateInit2_(
            &stream, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { throw CancellationError() }
    defer { deflateEnd(&stream) }
    var block = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(bytes.count))) + 16)
    var input = bytes
    let status = input.withUnsafeMutableBufferPointer { input in
        block.withUnsafeMutableBufferPointer { block in
            (stream.next_in, stream.avail_in) = (input.baseAddress, UInt32(input.count))
            (stream.next_out, stream.avail_out) = (block.baseAddress, UInt32(block.count))
            // After a full flush the block does not depend on earlier output, so it can be repeated.
            return deflate(&stream, Z_FULL_FLUSH)
        }
    }
    guard status == Z_OK, stream.avail_in == 0, stream.avail_out > 0 else { throw CancellationError() }
    block.removeLast(Int(stream.avail_out))

    let one = crc32(0, bytes, UInt32(bytes.count))
    var sum: UInt = 0
    var packed: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3]
    for _ in 0..<times {
        sum = crc32_combine(sum, one, bytes.count)
        packed += block
    }
    // An empty final block.
    packed += [3, 0]
    for number in [UInt32(truncatingIfNeeded: sum), UInt32(truncatingIfNeeded: bytes.count * times)] {
        packed += (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
    return packed
}
