internal import CountersignCore
internal import CountersignJOSE
internal import GatewayModel

extension CustomerIdentifier {
    /// The most ids that a request names a customer by.
    static let maximum = 16
    /// The most bytes of an id's name.
    static let longestName = 64

    /// Why ids are not taken; holds none of them.
    struct Invalid: Error {
        let reason: String
    }

    /// The ids in an object that has each under its name. Returns each name once, in the order of the object. Throws
    /// what is wrong with them; trying again does not help.
    static func all(in node: JSONNode, named member: StaticString) throws(Invalid) -> [CustomerIdentifier] {
        guard node.kind == .object else { throw Invalid(reason: "\(member) must be a JSON object") }
        var identifiers: [CustomerIdentifier] = []
        for (name, value) in node.members {
            guard (1...longestName).contains(name.count), !name.hasControlCharacter else {
                throw Invalid(
                    reason:
                        "the names in \(member) must have 1 to \(longestName) bytes without control characters"
                )
            }
            switch EventIdentifier(value) {
            case .absent: break
            case .invalid: throw Invalid(reason: "the values in \(member) must be \(EventIdentifier.shape)")
            case .value(let text):
                guard identifiers.count < maximum else {
                    throw Invalid(reason: "\(member) may have at most \(maximum) ids")
                }
                identifiers.append(
                    CustomerIdentifier(name: String(decoding: name, as: UTF8.self), value: text))
            }
        }
        return identifiers
    }
}
