internal import CountersignCore
internal import CountersignJOSE

/// The members of a request's body. What is missing, of the wrong type or not known is a 422 that names it.
struct AdminBody {
    private let members: [String: JSONValue]
    private let path: String

    /// - Parameters:
    ///   - bytes: One JSON object.
    ///   - known: The members that there are.
    /// - Throws: 400 or 422.
    init(_ bytes: [UInt8], known: [String]) throws {
        let value: JSONValue
        do {
            value = try StrictJSONParser(maximumBytes: 1 << 20).parse(bytes: bytes) { $0.value }
        } catch {
            throw AdminProblem(
                400, "invalid_json", "the body must be JSON of at most 1 MiB in which each member stands once"
            )
        }
        guard case .object(let members) = value else {
            throw AdminProblem(422, "invalid", "the body must be a JSON object")
        }
        try self.init(members, path: "", known: known)
    }

    private init(_ members: [String: JSONValue], path: String, known: [String]) throws {
        if let unknown = members.keys.sorted().first(where: { !known.contains($0) }) {
            throw AdminProblem.invalid(
                path + unknown, "is not known; there are \(known.joined(separator: ", "))")
        }
        self.members = members
        self.path = path
    }

    func has(_ name: String) -> Bool { members[name] != nil }

    private func value(_ name: String) -> JSONValue? {
        members[name].flatMap { $0 == .null ? nil : $0 }
    }

    func text(_ name: String) throws -> String {
        guard let text = try optionalText(name) else { throw AdminProblem.invalid(path + name, "is missing") }
        return text
    }

    func optionalText(_ name: String, longest: Int = 65_536) throws -> String? {
        guard let value = value(name) else { return nil }
        guard case .string(let text) = value, text.utf8.count <= longest else {
            throw AdminProblem.invalid(path + name, "must be a string of at most \(longest) bytes")
        }
        return text
    }

    func integer(_ name: String, _ range: ClosedRange<Int64>) throws -> Int64? {
        guard let value = value(name) else { return nil }
        guard case .integer(let number) = value, range.contains(number) else {
            throw AdminProblem.invalid(
                path + name, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func number(_ name: String) throws -> Double? {
        switch value(name) {
        case nil: return nil
        case .integer(let number): return Double(number)
        case .number(let number): return number
        default: throw AdminProblem.invalid(path + name, "must be a number")
        }
    }

    func texts(_ name: String) throws -> [String]? {
        guard let value = value(name) else { return nil }
        guard case .array(let elements) = value else {
            throw AdminProblem.invalid(path + name, "must be an array of strings")
        }
        return try elements.map {
            guard case .string(let text) = $0 else {
                throw AdminProblem.invalid(path + name, "must be an array of strings")
            }
            return text
        }
    }

    func object(_ name: String, known: [String]) throws -> AdminBody? {
        guard let value = value(name) else { return nil }
        guard case .object(let members) = value else {
            throw AdminProblem.invalid(path + name, "must be an object")
        }
        return try AdminBody(members, path: path + name + ".", known: known)
    }

    /// One of several words.
    func choice<Value: RawRepresentable>(
        _ name: String, _ all: [Value]
    ) throws -> Value? where Value.RawValue == String {
        guard let text = try optionalText(name) else { return nil }
        guard let value = all.first(where: { $0.rawValue == text }) else {
            throw AdminProblem.invalid(
                path + name, "must be one of \(all.map(\.rawValue).joined(separator: ", "))")
        }
        return value
    }
}
