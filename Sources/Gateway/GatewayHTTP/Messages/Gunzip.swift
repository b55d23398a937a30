internal import CZlib
internal import GatewayModel

/// Decompression of request bodies (RFC 1952) with size limits.
enum Gunzip {
    enum Failure: Error {
        /// Not gzip, cut off, or damaged.
        case damaged
        /// Larger than the body limit, or with a higher compression ratio than allowed.
        case tooLarge
    }

    private static let exempt = 64 * 1024

    /// Returns the body's ISIZE (RFC 1952, section 2.3.1) or the size limit, whichever is less.
    static func size(of bytes: [UInt8], limits: GatewayLimits) throws(Failure) -> Int {
        guard bytes.count >= 18 else { throw .damaged }
        // ISIZE is meaningless if the body was truncated, so a value over the limit is not an error here.
        return min(bytes.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }, bound(of: bytes, limits))
    }

    private static func bound(of bytes: [UInt8], _ limits: GatewayLimits) -> Int {
        min(limits.bodyBytes, max(exempt, bytes.count * limits.compressionRatio))
    }

    static func decompress(_ bytes: [UInt8], size: Int, limits: GatewayLimits) throws(Failure) -> [UInt8] {
        var stream = z_stream()
        // 16 requires a gzip header. `MAX_WBITS` allows the largest window.
        guard
            inflateInit2_(&stream, 16 + MAX_WBITS, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
        else { throw .damaged }
        defer { inflateEnd(&stream) }
        let bound = bound(of: bytes, limits)
        var output: [UInt8] = []
        output.reserveCapacity(size)
        let status = bytes.withUnsafeBufferPointer { input -> Int32 in
            stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
            stream.avail_in = UInt32(input.count)
            return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32 * 1024) { chunk in
                var status = Z_OK
                repeat {
                    stream.next_out = chunk.baseAddress
                    stream.avail_out = UInt32(chunk.count)
                    status = inflate(&stream, Z_NO_FLUSH)
                    let made = chunk.count - Int(stream.avail_out)
                    if output.count + made > bound { return Z_MEM_ERROR }
                    if output.count + made > size { return Z_DATA_ERROR }
                    output.append(contentsOf: chunk[..<made])
                } while status == Z_OK && (stream.avail_in > 0 || stream.avail_out == 0)
                return status
            }
        }
        if status == Z_MEM_ERROR { throw .tooLarge }
        // Rejects data after the first gzip member, because `inflate` ignores such data.
        guard status == Z_STREAM_END, stream.avail_in == 0 else { throw .damaged }
        return output
    }
}
