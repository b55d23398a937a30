internal import GatewayModel

extension BucketLength {
    var table: String { "verdict_" + rawValue }
    /// The counts of all endpoints, modes, versions and keys together: what a chart without a filter reads.
    var sumTable: String { table + "_sum" }
}
