/// Reading what is kept of customers. Reading never waits for a writer, and sees all that was answered before.
package protocol CustomerStore: Sendable {
    /// The customer that one of these ids belongs to; the hard id decides, then the order of the ids.
    func customer(appID: String, _ identifiers: [CustomerIdentifier]) throws -> StoredCustomer?

    /// A property's JSON, or nil when the customer does not have it.
    func property(_ name: String, of customer: StoredCustomer) throws -> String?

    /// All ids of a customer, the newest last.
    func identifiers(of customer: StoredCustomer) throws -> [CustomerIdentifier]

    /// Which App Inbox messages the customer has read.
    func inboxReads(of customer: StoredCustomer) throws -> [InboxRead]

    /// True when the customer with this id has been merged into `customer`.
    func isMerged(_ id: String, into customer: StoredCustomer) throws -> Bool
}

/// A customer, as far as most requests need to know.
package struct StoredCustomer: Sendable, Equatable {
    package let id: String
    /// True when the customer has a hard id.
    package let isIdentified: Bool
}

/// That a customer has read a message.
package struct InboxRead: Sendable, Equatable {
    /// Counts up over all customers.
    package let sequence: Int64
    package let messageID: String
}
