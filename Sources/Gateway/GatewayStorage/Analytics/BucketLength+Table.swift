internal import GatewayModel

extension BucketLength {
    var table: String { "verdict_" + rawValue }
    /// The counts of all endpoints, modes, versions and keys together, for charts without a filter.
    var sumTable: String { table + "_sum" }
}
