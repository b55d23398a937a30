internal import GatewayModel

extension BucketLength {
    var table: String { "verdict_" + rawValue }
    /// The table of counts summed over endpoints, modes, SDKs, versions and keys, for charts without a filter.
    var sumTable: String { table + "_sum" }
}
