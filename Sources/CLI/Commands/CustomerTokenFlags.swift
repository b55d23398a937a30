internal import CountersignJOSE

/// Flags for customer tokens, in which `sub` is an object of the customer's ids.
enum CustomerTokenFlags {
    static let customerID = Flag(
        "customer-id", .text("NAME=VALUE"), maximumCount: 16,
        help: "an id of the customer, such as registered=ada; up to 16 times")
    static let secret = Flag(
        "secret-file", .path("FILE"),
        help: "a private key of the Bloomreach project, for HS256; --kid is its id; - reads standard input")

    static func customerIDs(_ invocation: Invocation) throws -> [String: String] {
        var identifiers: [String: String] = [:]
        for text in invocation.values(of: customerID) {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else {
                throw CommandError(
                    .usage, "--customer-id takes a name and a value", hint: "--customer-id registered=ada")
            }
            guard identifiers.updateValue(String(parts[1]), forKey: String(parts[0])) == nil else {
                throw CommandError(.usage, "--customer-id names \(parts[0]) twice")
            }
        }
        return identifiers
    }

    static func key(_ invocation: Invocation, keyID: Flag) throws -> CustomerTokenKey? {
        guard let file = try invocation.value(of: secret) else { return nil }
        guard let id = try invocation.value(of: keyID), !id.isEmpty else {
            throw CommandError(
                .usage, "the key's id is missing", hint: "--kid ID, as in `countersign project key add`")
        }
        do {
            return try CustomerTokenKey(id: id, secret: try invocation.secret(ofFile: file))
        } catch let error as JOSEError {
            throw CommandError(.failed, "\(file): \(error.reason)")
        }
    }
}
