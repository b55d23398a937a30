internal import CountersignCore
internal import CountersignJSON
internal import GatewayModel

struct AdminBody {
    static let longest = 1 << 20
    static let longestName = 256

    let members: JSONObject
    private let known: [JSONMember]

    /// Throws 400, 413 or 422.
    init(_ bytes: [UInt8], _ shape: JSONShape) throws {
        guard bytes.count <= Self.longest else {
            throw AdminProblem(413, "too_large", "a body may have at most 1 MiB")
        }
        let value: JSONValue
        do {
            value = try StrictJSONParser(maximumBytes: Self.longest, maximumNameBytes: Self.longestName)
                .parse(bytes: bytes) { $0.value }
        } catch {
            throw AdminProblem(
                400, "invalid_json",
                "the body must be JSON without duplicate members, and a member's name may have at most "
                    + "\(Self.longestName) bytes")
        }
        guard case .object(let members) = value else {
            throw AdminProblem(422, "invalid", "the body must be a JSON object")
        }
        if case .object(let known) = shape { self.known = known } else { known = [] }
        do throws(ShapeMismatch) {
            try shape.check(value, at: "")
        } catch {
            throw AdminProblem.invalid(error.path, error.detail)
        }
        self.members = members
    }

    func text(_ name: String) throws -> String {
        guard let text: String = value(name) else { throw AdminProblem.invalid(name, "is missing") }
        return text
    }

    /// Nil if the member is null or missing.
    func value<Member: JSONConvertible>(_ name: String) -> Member? {
        assert(known.contains { $0.name == name }, "the route does not declare \(name)")
        return members[name].flatMap { Member(jsonValue: $0) }
    }
}
