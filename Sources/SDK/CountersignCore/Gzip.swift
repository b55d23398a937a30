internal import CZlib

package enum Gzip {
    /// Returns one gzip member (RFC 1952), or nil without enough memory. `level` is from 1 (fastest) to 9 (smallest).
    package static func compress(_ bytes: [UInt8], level: Int32 = 1) -> [UInt8]? {
        var stream = z_stream()
        // 16 + 15: a gzip header, with the largest window.
        guard
            deflateInit2_(
                &stream, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
                Int32(MemoryLayout<z_stream>.size)) == Z_OK
        else { return nil }
        defer { deflateEnd(&stream) }
        let bound = Int(deflateBound(&stream, UInt(bytes.count)))
        var status = Z_OK
        let packed = [UInt8](unsafeUninitializedCapacity: bound) { output, count in
            bytes.withUnsafeBufferPointer { input in
                stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
                stream.avail_in = UInt32(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(bound)
                status = deflate(&stream, Z_FINISH)
            }
            count = status == Z_STREAM_END ? Int(stream.total_out) : 0
        }
        return status == Z_STREAM_END ? packed : nil
    }
}
