package import CountersignCore
package import GatewayModel

/// The stored data of a customer: the profile and the number of events.
package struct CustomerRecord: Sendable {
    package struct Property: Sendable {
        package let name: String
        package let value: JSONValue
        package let updatedMilliseconds: Int64

        package init(name: String, value: JSONValue, updatedMilliseconds: Int64) {
            self.name = name
            self.value = value
            self.updatedMilliseconds = updatedMilliseconds
        }
    }

    package var identifiers: [CustomerIdentifier]
    package var properties: [Property] = []
    /// Whether the customer has more properties than are read: 1,000 properties or 1 MiB of values.
    package var hasMoreProperties = false
    /// In milliseconds since 1970; nil without a profile.
    package var createdMilliseconds: Int64?
    /// When the person was seen last, to the hour; nil without a profile.
    package var seenMilliseconds: Int64?
    /// The number of stored events; 100,000 means as many or more.
    package var events = 0

    package init(identifiers: [CustomerIdentifier]) {
        self.identifiers = identifiers
    }
}

package struct CustomerDeletion: Sendable, Equatable {
    package var hasProfile = false
    package var events = 0
    /// Samples of failed requests.
    package var samples = 0

    package init() {}

    package var isEmpty: Bool { self == CustomerDeletion() }
}

/// Finds and deletes the stored data of one person, whether or not a gateway runs.
///
/// A `registered` id, which is the user id of events, or another id of a profile identifies the person.
package protocol CustomerRecordStore: Sendable {
    /// Nil when the person has neither a profile nor events.
    func find(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError) -> CustomerRecord?

    /// The ids of the apps that have at least one customer profile.
    func apps() throws(GatewayError) -> BytewiseSet

    /// Includes events that the profile's devices sent before the user signed in. Repeat the call after an error, and
    /// for events that are stored during the call.
    func delete(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError) -> CustomerDeletion
}

extension CustomerRecordStore {
    /// Reads one index entry for each app.
    package static func apps(_ connection: any SQLConnection) throws -> BytewiseSet {
        BytewiseSet(
            try connection.all(
                """
                WITH RECURSIVE own (id) AS (
                    SELECT min(app_id) FROM customer
                    UNION ALL SELECT (SELECT min(app_id) FROM customer WHERE app_id > own.id)
                    FROM own WHERE own.id IS NOT NULL)
                SELECT id FROM own WHERE id IS NOT NULL
                """, []
            ) { $0.text(0) })
    }
}
