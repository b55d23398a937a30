internal import CountersignCore

/// Reads stored customers. Reads do not wait for writers, and see all acknowledged writes.
package protocol CustomerStore: Sendable {
    func owner(of identifier: CustomerIdentifier, appID: String) throws -> StoredCustomer?

    /// The property as JSON; nil when the customer does not have it.
    func property(_ name: String, of customer: StoredCustomer) throws -> String?

    /// The customer's newest id with this name, or nil.
    func identifier(_ name: String, of customer: StoredCustomer) throws -> String?

    /// All ids of a customer, the newest last.
    func identifiers(of customer: StoredCustomer) throws -> [CustomerIdentifier]

    func inboxReads(of customer: StoredCustomer) throws -> [InboxRead]

    func isMerged(_ id: String, into customer: StoredCustomer) throws -> Bool

    func close()
}

extension CustomerStore {
    /// Returns a customer whose data the request may read, or nil. Also returns `identifiers` without the ids of
    /// other customers that have a hard id. Throws when the storage cannot be read; retry.
    ///
    /// A soft id grants access only to a customer without a hard id, because a cookie or an address does not
    /// prove identity.
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

package struct StoredCustomer: Sendable, Equatable {
    package let id: String
    package let isIdentified: Bool

    package init(id: String, isIdentified: Bool) {
        self.id = id
        self.isIdentified = isIdentified
    }
}

package struct InboxRead: Sendable, Equatable {
    /// A number that increases with each read message, across all customers.
    package let sequence: Int64
    package let messageID: String

    package init(sequence: Int64, messageID: String) {
        self.sequence = sequence
        self.messageID = messageID
    }
}
