struct EventIndexRecord {
    let sequence: Int64
    let key: EventKey
    let app: UInt64
    let message: UInt64
    /// The hash of the user or, without a user, of the device.
    let senderHash: UInt64?
}
