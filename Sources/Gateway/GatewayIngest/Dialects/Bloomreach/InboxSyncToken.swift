internal import CountersignCore
internal import CountersignCrypto
internal import GatewayModel

/// The position up to which a client has fetched its App Inbox. Grants no access, so it is not signed.
struct InboxSyncToken: Equatable {
    /// Incremented when an operator invalidates all sync tokens.
    var epoch: Int64
    var revision: Int64
    var readSequence: Int64
    /// The customer of the inbox; nil if the request's readable ids belonged to no customer.
    var customerID: String?
    /// A hash of the ids of the fetch. A fetch with other ids starts over, because those ids may have older messages.
    var audience: String

    init(
        epoch: Int64, revision: Int64, readSequence: Int64, customerID: String?,
        identifiers: [CustomerIdentifier]
    ) {
        self.epoch = epoch
        self.revision = revision
        self.readSequence = readSequence
        self.customerID = customerID
        audience = Self.audience(of: identifiers)
    }

    /// Returns the same hash for the same ids in any order.
    static func audience(of identifiers: [CustomerIdentifier]) -> String {
        let names = identifiers.map { JSONValue.array([.string($0.name), .string($0.value)]).bytes }
            .sorted { $0.lexicographicallyPrecedes($1) }
        return Base64URL.encode(Array(SHA256.digest(Array(names.joined())).prefix(9)))
    }

    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 6, parts[0] == "1", let epoch = Int64(parts[1]), let revision = Int64(parts[2]),
            let readSequence = Int64(parts[3]), parts[4].utf8.count <= 64, parts[5].utf8.count <= 64
        else { return nil }
        self.epoch = epoch
        self.revision = revision
        self.readSequence = readSequence
        customerID = parts[4].isEmpty ? nil : String(parts[4])
        audience = String(parts[5])
    }

    var text: String { "1.\(epoch).\(revision).\(readSequence).\(customerID ?? "").\(audience)" }
}
