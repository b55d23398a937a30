/// What the index knows of one event.
struct IndexedEvent {
    let sequence: Int64
    let key: EventKey
    /// The hash of its app.
    let app: UInt64
    /// The hash of its message id.
    let message: UInt64
    /// The hash of its user or, without one, of its device.
    let whose: UInt64?
}
