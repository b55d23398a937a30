internal import CountersignCrypto
internal import Foundation

/// The offsets of the three parts of a compact JWS (RFC 7515, section 7.1).
struct CompactForm {
    /// Offset of the first dot.
    let headerEnd: Int
    /// Offset of the second dot. The signing input ends before it.
    let payloadEnd: Int

    init?(_ token: UnsafeBufferPointer<UInt8>) {
        func dot(from start: Int) -> Int? {
            guard let base = token.baseAddress else { return nil }
            return memchr(base + start, 0x2E, token.count - start).map {
                UnsafeRawPointer($0) - UnsafeRawPointer(base)
            }
        }
        guard let first = dot(from: 0), let second = dot(from: first + 1), dot(from: second + 1) == nil else {
            return nil
        }
        (headerEnd, payloadEnd) = (first, second)
    }

    /// The decoded parts, stored in `scratch`, which must have space for the token.
    struct Parts {
        let header: UnsafeRawBufferPointer
        let payload: UnsafeRawBufferPointer
        let signature: UnsafeBufferPointer<UInt8>
    }

    func decode(
        _ token: UnsafeBufferPointer<UInt8>, scratch: UnsafeMutablePointer<UInt8>
    ) -> Parts? {
        let signatureStart = payloadEnd + 1
        let payloadStart = headerEnd + 1
        guard
            let header = Base64URL.decode(
                UnsafeBufferPointer(rebasing: token[..<headerEnd]), into: scratch),
            let payload = Base64URL.decode(
                UnsafeBufferPointer(rebasing: token[payloadStart..<payloadEnd]), into: scratch + payloadStart),
            let signature = Base64URL.decode(
                UnsafeBufferPointer(rebasing: token[signatureStart...]), into: scratch + signatureStart)
        else { return nil }
        return Parts(
            header: UnsafeRawBufferPointer(start: scratch, count: header),
            payload: UnsafeRawBufferPointer(start: scratch + payloadStart, count: payload),
            signature: UnsafeBufferPointer(start: scratch + signatureStart, count: signature))
    }
}
