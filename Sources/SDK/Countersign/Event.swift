package import CountersignCore

/// A user's action or traits.
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

/// The wire format of events for one kind of server.
package protocol EventDialect: Destination {
    /// Renders an event as stored in the queue and later put into a request.
    func render(_ event: Event, of record: EventRecord, anonymousID: String) -> [UInt8]
}
