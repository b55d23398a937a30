/// What the index knows of one event.
struct IndexedEvent {
    let sequence: Int64
    let key: EventKey
    /// The hash of its app.
    let app: UInt64
    /// Hashes of what else it is looked for by; the user's, if it has one, is the last.
    let subjects: [UInt64]
}
