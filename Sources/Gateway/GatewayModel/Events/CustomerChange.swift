package struct CustomerIdentifier: Sendable, Hashable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// A customer has at most one hard id. Customers with different hard ids are never merged.
    package static let hardName = "registered"
    package var isHard: Bool { name.utf8.elementsEqual(Self.hardName.utf8) }

    /// The name of the soft id that a device generates.
    package static let cookieName = "cookie"
    package var isCookie: Bool { name.utf8.elementsEqual(Self.cookieName.utf8) }

    /// Compares bytes, so canonically equivalent strings are different ids.
    package static func == (one: CustomerIdentifier, other: CustomerIdentifier) -> Bool {
        one.name.utf8.elementsEqual(other.name.utf8) && one.value.utf8.elementsEqual(other.value.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in name.utf8 { hasher.combine(byte) }
        hasher.combine(UInt8(0xFF))
        for byte in value.utf8 { hasher.combine(byte) }
    }
}

/// A request's changes to a customer. Stored in one transaction with the request's events, or with the first of them.
package struct CustomerChange: Sendable {
    /// The customer's ids: at least one, and each name once.
    package var identifiers: [CustomerIdentifier]
    /// Whether only the cookie, and no other soft id, merges customers.
    package var joinsByCookieOnly = false
    /// Properties to set, as name and JSON; `null` deletes a property.
    package var properties: [(name: String, json: [UInt8])] = []
    /// Time of the properties, in milliseconds since 1970. An older value never replaces a newer one.
    package var atMilliseconds: Int64
    package var readMessageIDs: [String] = []

    package init(
        identifiers: [CustomerIdentifier], joinsByCookieOnly: Bool = false, atMilliseconds: Int64
    ) {
        self.identifiers = identifiers
        self.joinsByCookieOnly = joinsByCookieOnly
        self.atMilliseconds = atMilliseconds
    }
}
