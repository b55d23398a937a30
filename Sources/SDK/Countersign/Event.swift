package import CountersignCore

/// Something that a user has done, or what is known of them.
package struct Event: RecordContent {
    package let kind: EventKind
    package let name: String?
    /// At most `JSONValue.maximumLevels` levels deep.
    package let payload: JSONObject
    package let dialect: any EventDialect

    package init(_ kind: EventKind, name: String?, payload: JSONObject, dialect: any EventDialect) {
        self.kind = kind
        self.name = name
        self.payload = payload.limited()
        self.dialect = dialect
    }

    package var estimatedBytes: Int { JSONValue.object(payload).estimatedBytes }

    package func rendered(for record: EventRecord, anonymousID: String) -> [UInt8] {
        dialect.render(self, of: record, anonymousID: anonymousID)
    }
}

/// How events look on the wire of one kind of server.
package protocol EventDialect: Destination {
    /// An event as it is kept in the queue and later put into a request.
    func render(_ event: Event, of record: EventRecord, anonymousID: String) -> [UInt8]
}
