package import CountersignCore

/// A field of a value that is represented as a JSON object: its name, its shape, and how to get and set it.
package struct JSONField<Owner>: Sendable {
    package let name: String
    /// The shape in responses; nil for a field that responses omit.
    package let shown: JSONShape?
    /// The shape in changes; nil for a field that operators cannot change.
    package let taken: JSONMember?
    package let isKept: Bool

    /// Whether a change sets the field. A change may contain a read-only field, but its value is ignored.
    package var isTaken: Bool { taken.map { !$0.isReadOnly } ?? false }

    package let get: @Sendable (Owner) -> JSONValue
    /// The field as stored, including secrets.
    package let keep: @Sendable (Owner) -> JSONValue
    /// The field as in the audit log, which stores it permanently in clear text.
    package let audit: @Sendable (Owner) -> JSONValue
    /// Sets the field. Most fields ignore values of another shape.
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

extension JSONField {
    init(answered name: String, _ shown: JSONShape?, _ get: @escaping @Sendable (Owner) -> JSONValue) {
        self.init(name, shown: shown, taken: nil, isKept: false, get: get, set: { _, _ in })
    }

    package init<Member: JSONConvertible>(
        _ name: String, _ shape: JSONShape, _ get: @escaping @Sendable (Owner) -> Member
    ) {
        self.init(answered: name, shape) { get($0).jsonValue }
    }

    package init<Member: JSONConvertible>(_ name: String, _ get: @escaping @Sendable (Owner) -> Member) {
        self.init(name, Member.jsonShape, get)
    }

    package static func time(_ name: String, _ get: @escaping @Sendable (Owner) -> Int64) -> JSONField {
        JSONField(name, .milliseconds, get)
    }

    /// Milliseconds since 1970; null for never.
    package static func time(_ name: String, _ get: @escaping @Sendable (Owner) -> Int64?) -> JSONField {
        JSONField(name, .nullable(.milliseconds), get)
    }

    package func of<Whole>(_ part: @escaping @Sendable (Whole) -> Owner) -> JSONField<Whole> {
        JSONField<Whole>(answered: name, shown) { [get] in get(part($0)) }
    }
}

/// Fields of settings, each at a key path. Changes must contain fields with `isRequired`.
extension JSONField {
    package typealias Path<Value> = any WritableKeyPath<Owner, Value> & Sendable

    init<Member: JSONConvertible>(
        _ name: String, at path: Path<Member>, shown: JSONShape?, taken: JSONMember?
    ) {
        self.init(
            name, shown: shown, taken: taken, get: { $0[keyPath: path].jsonValue },
            set: { if let value = Member(jsonValue: $1) { $0[keyPath: path] = value } })
    }

    /// A field with the same shape in responses and changes.
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

    /// An optional value, which is null in responses when missing.
    package static func optional<Member: JSONConvertible>(
        _ name: String, _ path: Path<Member?>, _ shape: JSONShape = Member.jsonShape
    ) -> JSONField {
        JSONField(name, at: path, shown: Member?.jsonShape, taken: .may(name, shape))
    }

    package static func text(_ name: String, _ path: Path<String>, longest: Int) -> JSONField {
        JSONField(name, at: path, shown: .string, taken: .must(name, .text(longest: longest)))
    }

    /// A URL. Its path and query may contain a secret, so the audit log stores only the origin and a fingerprint.
    package static func url(_ name: String, _ path: Path<String>) -> JSONField {
        JSONField(
            name, shown: .string, taken: .must(name, .text(longest: 2_048)),
            get: { .string($0[keyPath: path]) },
            audit: { .string(OutgoingURL.audited($0[keyPath: path])) },
            set: { if let value = String(jsonValue: $1) { $0[keyPath: path] = value } })
    }

    /// An enumeration. Stored words that this version does not know read as `unreadable`. Pass the strictest case.
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

    package static func own(_ name: String, _ path: Path<Int64>) -> JSONField {
        JSONField(name, at: path, shown: nil, taken: nil)
    }

    /// A secret, stored as hexadecimal digits.
    package static func secret(_ name: String, taken: JSONMember? = nil, _ path: Path<[UInt8]>) -> JSONField {
        JSONField(
            name, shown: nil, taken: taken,
            get: { .string($0[keyPath: path].hexadecimal) },
            set: { if case .string(let text) = $1 { $0[keyPath: path] = Array(hexadecimal: text) ?? [] } })
    }
}
