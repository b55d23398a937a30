package import CountersignCore

/// A member of a JSON object that a value is written as: what it is called, what shape it has and where it lies in the
/// value.
package struct JSONField<Owner>: Sendable {
    package let name: String
    /// How it is answered; nil for what only the gateway itself knows.
    package let shown: JSONShape?
    /// How a change may hold it; nil for what is no operator's to change.
    package let taken: JSONMember?
    package let isKept: Bool

    /// False for what is taken in changes only so that an answer can be sent back.
    package var isTaken: Bool { taken.map { !$0.isReadOnly } ?? false }

    /// The field as it is answered.
    package let get: @Sendable (Owner) -> JSONValue
    /// The field as it is kept: with its secrets.
    package let keep: @Sendable (Owner) -> JSONValue
    /// The field's value for the audit log, which stores it permanently in clear text.
    package let audit: @Sendable (Owner) -> JSONValue
    /// Sets the field to a value of its shape, and leaves it as it is for any other.
    package let set: @Sendable (inout Owner, JSONValue) -> Void

    package init(
        _ name: String, shown: JSONShape?, taken: JSONMember?, isKept: Bool = true,
        get: @escaping @Sendable (Owner) -> JSONValue,
        keep: (@Sendable (Owner) -> JSONValue)? = nil,
        audit: (@Sendable (Owner) -> JSONValue)? = nil,
        set: @escaping @Sendable (inout Owner, JSONValue) -> Void
    ) {
        self.name = name
        self.shown = shown
        self.taken = taken
        self.isKept = isKept
        self.get = get
        self.keep = keep ?? get
        self.audit = audit ?? get
        self.set = set
    }
}

/// Fields of answers, which nobody sets.
extension JSONField {
    init(answered name: String, _ shown: JSONShape?, _ get: @escaping @Sendable (Owner) -> JSONValue) {
        self.init(name, shown: shown, taken: nil, isKept: false, get: get, set: { _, _ in })
    }

    package init<Member: JSONConvertible>(
        _ name: String, _ shape: JSONShape, _ get: @escaping @Sendable (Owner) -> Member
    ) {
        self.init(answered: name, shape) { get($0).jsonValue }
    }

    /// A field that has the shape of its type.
    package init<Member: JSONConvertible>(_ name: String, _ get: @escaping @Sendable (Owner) -> Member) {
        self.init(name, Member.jsonShape, get)
    }

    /// Milliseconds since 1970.
    package static func time(_ name: String, _ get: @escaping @Sendable (Owner) -> Int64) -> JSONField {
        JSONField(name, .milliseconds, get)
    }

    /// Milliseconds since 1970; null for never.
    package static func time(_ name: String, _ get: @escaping @Sendable (Owner) -> Int64?) -> JSONField {
        JSONField(name, .nullable(.milliseconds), get)
    }

    /// The same field of something that its owner is a part of.
    package func of<Whole>(_ part: @escaping @Sendable (Whole) -> Owner) -> JSONField<Whole> {
        JSONField<Whole>(answered: name, shown) { [get] in get(part($0)) }
    }
}

/// Fields of settings, which lie at one place of the value. Those that a change must hold are `isRequired`.
extension JSONField {
    package typealias Path<Value> = any WritableKeyPath<Owner, Value> & Sendable

    init<Member: JSONConvertible>(
        _ name: String, at path: Path<Member>, shown: JSONShape?, taken: JSONMember?
    ) {
        self.init(
            name, shown: shown, taken: taken, get: { $0[keyPath: path].jsonValue },
            set: { if let value = Member(jsonValue: $1) { $0[keyPath: path] = value } })
    }

    /// A field that is answered as it is taken.
    package static func member<Member: JSONConvertible>(
        _ name: String, _ path: Path<Member>, _ shape: JSONShape, isRequired: Bool = false
    ) -> JSONField {
        JSONField(
            name, at: path, shown: shape, taken: isRequired ? .must(name, shape) : .may(name, shape))
    }

    package static func bool(_ name: String, _ path: Path<Bool>) -> JSONField { .member(name, path, .bool) }

    package static func integer(
        _ name: String, _ path: Path<Int>, _ range: ClosedRange<Int>, isRequired: Bool = false
    ) -> JSONField {
        let shape = JSONShape.integer(Int64(range.lowerBound)...Int64(range.upperBound))
        return .member(name, path, shape, isRequired: isRequired)
    }

    /// A value that may be missing, and is then answered as null.
    package static func optional<Member: JSONConvertible>(
        _ name: String, _ path: Path<Member?>, _ shape: JSONShape = Member.jsonShape
    ) -> JSONField {
        JSONField(name, at: path, shown: Member?.jsonShape, taken: .may(name, shape))
    }

    package static func text(_ name: String, _ path: Path<String>, longest: Int) -> JSONField {
        JSONField(name, at: path, shown: .string, taken: .must(name, .text(longest: longest)))
    }

    /// The URL of a request that the gateway makes. Its path and query may contain a secret. So the audit log stores
    /// only the origin and, if the URL has more, a fingerprint that tells two URLs apart.
    package static func url(_ name: String, _ path: Path<String>) -> JSONField {
        JSONField(
            name, shown: .string, taken: .must(name, .text(longest: 2_048)),
            get: { .string($0[keyPath: path]) },
            audit: { .string(OutgoingURL.audited($0[keyPath: path])) },
            set: { if let value = String(jsonValue: $1) { $0[keyPath: path] = value } })
    }

    /// One of several words. What cannot be read is `unreadable`, the strictest.
    package static func choice<Value: RawRepresentable & CaseIterable & Sendable>(
        _ name: String, _ path: Path<Value>, unreadable: Value
    ) -> JSONField where Value.RawValue == String {
        JSONField(
            name, shown: .choice(of: Value.self), taken: .must(name, .choice(of: Value.self)),
            get: { .string($0[keyPath: path].rawValue) },
            set: { setting, value in
                guard case .string(let word) = value else { return }
                setting[keyPath: path] = Value(rawValue: word) ?? unreadable
            })
    }

    /// A number of the gateway's own.
    package static func own(_ name: String, _ path: Path<Int64>) -> JSONField {
        JSONField(name, at: path, shown: nil, taken: nil)
    }

    /// A secret, kept as hexadecimal digits.
    package static func secret(_ name: String, taken: JSONMember? = nil, _ path: Path<[UInt8]>) -> JSONField {
        JSONField(
            name, shown: nil, taken: taken,
            get: { .string($0[keyPath: path].hexadecimal) },
            set: { if case .string(let text) = $1 { $0[keyPath: path] = Array(hexadecimal: text) ?? [] } })
    }
}
