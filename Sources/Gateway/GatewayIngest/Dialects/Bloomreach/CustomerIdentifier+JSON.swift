internal import CountersignCore
internal import CountersignJSON
internal import GatewayModel

extension CustomerIdentifier {
    /// The maximum number of ids in an object.
    static let maximum = 16
    /// The maximum size of an id's name in bytes.
    static let longestName = 64

    /// The reason why ids are invalid. Contains no id.
    struct Invalid: Error {
        let reason: String
    }

    /// The ids in a JSON object, in its order, without null and empty values. The parser rejects duplicate names.
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
