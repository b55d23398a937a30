internal import CountersignCore

/// Reading what is kept of customers. Reading never waits for a writer, and sees all that was answered before.
package protocol CustomerStore: Sendable {
    /// The customer that an id belongs to.
    func owner(of identifier: CustomerIdentifier, appID: String) throws -> StoredCustomer?

    /// A property's JSON, or nil when the customer does not have it.
    func property(_ name: String, of customer: StoredCustomer) throws -> String?

    /// The newest id of a customer with this name, or nil.
    func identifier(_ name: String, of customer: StoredCustomer) throws -> String?

    /// All ids of a customer, the newest last.
    func identifiers(of customer: StoredCustomer) throws -> [CustomerIdentifier]

    /// Which App Inbox messages the customer has read.
    func inboxReads(of customer: StoredCustomer) throws -> [InboxRead]

    /// True when the customer with this id has been merged into `customer`.
    func isMerged(_ id: String, into customer: StoredCustomer) throws -> Bool

    /// Ends; what is asked afterwards fails.
    func close()
}

extension CustomerStore {
    /// Finds whom the ids of a request open, for reading.
    ///
    /// A hard id opens its customer. Soft ids open a customer only who has no hard id: whoever knows somebody's cookie
    /// or address is not yet that customer. Returns the customer, nil if there is none or they stay closed; and the ids
    /// without those of other customers who have a hard id. Throws `storage` when the storage cannot be read; try
    /// again.
    package func open(
        _ identifiers: [CustomerIdentifier], appID: String
    ) throws -> (customer: StoredCustomer?, identifiers: [CustomerIdentifier]) {
        var customer = try identifiers.first(where: \.isHard).flatMap { try owner(of: $0, appID: appID) }
        let own = try identifiers.filter { identifier in
            guard !identifier.isHard, let owner = try owner(of: identifier, appID: appID) else { return true }
            if owner.isIdentified { return owner == customer }
            customer = customer ?? owner
            return true
        }
        return (customer, own)
    }
}

/// A customer, as far as most requests need to know.
package struct StoredCustomer: Sendable, Equatable {
    package let id: String
    /// True when the customer has a hard id.
    package let isIdentified: Bool

    package init(id: String, isIdentified: Bool) {
        self.id = id
        self.isIdentified = isIdentified
    }
}

/// That a customer has read a message.
package struct InboxRead: Sendable, Equatable {
    /// Counts up over all customers.
    package let sequence: Int64
    package let messageID: String

    package init(sequence: Int64, messageID: String) {
        self.sequence = sequence
        self.messageID = messageID
    }
}
