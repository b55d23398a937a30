internal import GatewayModel

/// The limits of a request's head and body, with the values of ``GatewayLimits``. Also has the fields that a request
/// may have only once.
final class HeadLimits: Sendable {
    let headerBytes: Int
    let headerFields: Int
    let bodyBytes: Int
    /// Fields that a request may have only once. If a field occurred twice, a proxy and the gateway could use
    /// different values. The index in the array is the field's bit in a set.
    private let singleFields: [StaticString]
    /// Bit n is set if the name of a single field has n bytes (modulo 64).
    private let singleLengths: UInt64

    private static let standard: [StaticString] = [
        "authorization", "content-encoding", "content-type", "cookie", "dpop", "idempotency-key", "if-match",
        "last-event-id", "origin",
    ]

    /// A request may have each of `credentialFields`, which are in lower case, only once.
    init(_ limits: GatewayLimits, credentialFields: [StaticString] = []) {
        headerBytes = limits.headerBytes
        headerFields = limits.headerFields
        bodyBytes = limits.bodyBytes
        singleFields = Self.standard + credentialFields
        singleLengths = singleFields.reduce(0) { $0 | 1 << UInt64($1.utf8CodeUnitCount & 63) }
    }

    /// Adds a field to the set of seen fields. Returns its name if the set had it already.
    @inline(__always)
    func noteSingle(_ name: UnsafeRawBufferPointer, in seen: inout UInt64) -> StaticString? {
        guard (singleLengths >> UInt64(name.count & 63)) & 1 != 0 else { return nil }
        for index in singleFields.indices where HTTPSyntax.matches(name, singleFields[index]) {
            let bit: UInt64 = 1 << UInt64(index)
            if seen & bit != 0 { return singleFields[index] }
            seen |= bit
        }
        return nil
    }
}
