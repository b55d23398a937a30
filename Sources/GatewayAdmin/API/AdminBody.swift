internal import CountersignCore
internal import CountersignJOSE
internal import GatewayModel

/// The members of a request's body, which have the shape that the route says.
struct AdminBody {
    /// The most bytes that a body may have.
    static let longest = 1 << 20
    /// The most bytes that a member's name may have.
    static let longestName = 256

    let members: [String: JSONValue]
    private let known: [JSONMember]

    /// - Parameters:
    ///   - bytes: One JSON object.
    ///   - type: What it may hold.
    /// - Throws: 400, 413 or 422.
    init(_ bytes: [UInt8], _ type: JSONShape) throws {
        guard bytes.count <= Self.longest else {
            throw AdminProblem(413, "too_large", "a body may have 1 MiB")
        }
        let value: JSONValue
        do {
            value = try StrictJSONParser(maximumBytes: Self.longest, maximumNameBytes: Self.longestName)
                .parse(bytes: bytes) { $0.value }
        } catch {
            throw AdminProblem(
                400, "invalid_json",
                "the body must be JSON in which each member stands once, under a name of at most "
                    + "\(Self.longestName) bytes")
        }
        guard case .object(let members) = value else {
            throw AdminProblem(422, "invalid", "the body must be a JSON object")
        }
        switch type {
        case .object(let known):
            do throws(ShapeMismatch) {
                try JSONShape.check(members, known)
            } catch {
                throw AdminProblem.invalid(error.path, error.detail)
            }
            self.init(members, known)
        default: self.init(members, [])
        }
    }

    private init(_ members: [String: JSONValue], _ known: [JSONMember]) {
        self.members = members
        self.known = known
    }

    /// True when the member is there, be it null.
    func has(_ name: String) -> Bool { members[name] != nil }

    func text(_ name: String) throws -> String {
        guard let text = optionalText(name) else { throw AdminProblem.invalid(name, "is missing") }
        return text
    }

    func optionalText(_ name: String) -> String? {
        if case .string(let text) = self[name] { text } else { nil }
    }

    func integer(_ name: String) -> Int64? {
        if case .integer(let number) = self[name] { number } else { nil }
    }

    func number(_ name: String) -> Double? {
        switch self[name] {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }

    func bool(_ name: String) -> Bool? {
        if case .bool(let value) = self[name] { value } else { nil }
    }

    func texts(_ name: String) -> [String]? {
        guard case .array(let elements) = self[name] else { return nil }
        return elements.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    func object(_ name: String) -> AdminBody? {
        guard case .object(let members) = self[name] else { return nil }
        guard case .object(let known) = known.first(where: { $0.name == name })?.type else { return nil }
        return AdminBody(members, known)
    }

    /// One of several words.
    func choice<Value: RawRepresentable>(_ name: String) -> Value? where Value.RawValue == String {
        optionalText(name).flatMap { Value(rawValue: $0) }
    }

    private subscript(name: String) -> JSONValue? {
        assert(known.contains { $0.name == name }, "the route does not say that it takes \(name)")
        return members[name]
    }
}
