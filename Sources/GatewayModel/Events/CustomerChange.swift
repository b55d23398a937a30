/// One name of a customer, such as `registered` = `jane@example.com` or `cookie` = a UUID.
package struct CustomerIdentifier: Sendable, Hashable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// The hard id: a customer has at most one, and two customers that have one each are never merged.
    package static let hardName = "registered"
    /// True for the hard id.
    package var isHard: Bool { name.utf8.elementsEqual(Self.hardName.utf8) }

    /// The soft id that a device makes up for itself.
    package static let cookieName = "cookie"
    /// True for the id of a device.
    package var isCookie: Bool { name.utf8.elementsEqual(Self.cookieName.utf8) }

    /// Two strings that look the same and differ in their bytes are two ids.
    package static func == (one: CustomerIdentifier, other: CustomerIdentifier) -> Bool {
        one.name.utf8.elementsEqual(other.name.utf8) && one.value.utf8.elementsEqual(other.value.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in name.utf8 { hasher.combine(byte) }
        hasher.combine(UInt8(0xFF))
        for byte in value.utf8 { hasher.combine(byte) }
    }
}

/// What one request says of a customer. Stored in the same transaction as the events of that request.
package struct CustomerChange: Sendable {
    /// Who it is; at least one, each name once.
    package var identifiers: [CustomerIdentifier]
    /// True when soft ids other than the cookie join no other customer.
    package var joinsByCookieOnly = false
    /// Properties to set, each as its name and its JSON; `null` takes a property away.
    package var properties: [(name: String, json: [UInt8])] = []
    /// Milliseconds since 1970 when the properties held; an older value never replaces a newer one.
    package var atMilliseconds: Int64
    /// App Inbox messages that the customer has read.
    package var readMessageIDs: [String] = []

    package init(
        identifiers: [CustomerIdentifier], joinsByCookieOnly: Bool = false, atMilliseconds: Int64
    ) {
        self.identifiers = identifiers
        self.joinsByCookieOnly = joinsByCookieOnly
        self.atMilliseconds = atMilliseconds
    }
}
