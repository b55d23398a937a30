package import CountersignCore

/// A value that is made of fields.
package protocol SettingPart: Sendable {
    static var fields: [SettingField<Self>] { get }
}

/// What an operator sets for an app: one value with a name, made of fields.
///
/// A field says once what it is called, what shape it has and where it lies in the value. The row that is kept, the entries
/// of the audit log, the admin API's answers, what a change may hold and the API's document are all made of the fields.
package protocol AppSetting: SettingPart {
    /// What it is kept under.
    static var settingName: String { get }
    /// What an app has for which nobody has set anything.
    static func standard(for appID: String) -> Self
    /// True when an app has none until somebody sets one; what is standard is then only what its fields are read into.
    static var mayBeMissing: Bool { get }
    /// What the audit log calls a change.
    static var action: String { get }
    /// Refuses fields that have the right shapes and do not go together.
    func check() throws(GatewayError)
}

extension SettingPart {
    /// The value as it is answered and audited: without its secrets.
    package var json: JSONValue { .object(members) }

    package var members: [String: JSONValue] {
        Dictionary(
            uniqueKeysWithValues: Self.fields.filter { $0.shown != nil }.map { ($0.name, $0.get(self)) })
    }

    /// The value as it is kept.
    package var kept: JSONValue {
        .object(
            Dictionary(uniqueKeysWithValues: Self.fields.filter(\.isKept).map { ($0.name, $0.keep(self)) }))
    }

    /// Takes over kept members.
    fileprivate mutating func read(_ members: [String: JSONValue]) {
        for field in Self.fields where field.isKept {
            if let value = members[field.name] { field.set(&self, value) }
        }
    }

    /// What is answered.
    package static var shown: [JSONMember] {
        fields.compactMap { field in field.shown.map { .must(field.name, $0) } }
    }

    /// What a change may hold.
    package static var taken: [JSONMember] { fields.compactMap(\.taken) }
}

extension AppSetting {
    package static var mayBeMissing: Bool { false }
    package static var action: String { settingName + ".set" }

    package func check() throws(GatewayError) {}

    /// A kept value. A field that was added since has what is standard.
    package init(kept members: [String: JSONValue], for appID: String) {
        self = Self.standard(for: appID)
        read(members)
    }

    /// Sets the fields that are named, null too.
    package mutating func set(_ members: [String: JSONValue]) {
        for field in Self.fields where field.isTaken {
            if let value = members[field.name] { field.set(&self, value) }
        }
    }

    /// Sets every field that a change may hold: to what is standard where it is not named.
    package mutating func replace(with members: [String: JSONValue], for appID: String) {
        let standard = Self.standard(for: appID)
        for field in Self.fields where field.isTaken { field.set(&self, field.get(standard)) }
        set(members)
    }

    /// Refuses a value that no change could have made.
    package func checkFields() throws(GatewayError) {
        do throws(ShapeMismatch) {
            let taken = Self.fields.filter { $0.isTaken && $0.shown != nil }
            try JSONShape.check(
                Dictionary(uniqueKeysWithValues: taken.map { ($0.name, $0.get(self)) }),
                taken.compactMap(\.taken))
        } catch {
            throw GatewayError(.invalid, "\(error.path) \(error.detail)")
        }
        try check()
    }
}

/// One field of a setting.
package struct SettingField<Setting>: Sendable {
    package let name: String
    /// How it is answered; nil for what only the gateway itself knows.
    package let shown: JSONShape?
    /// How a change may hold it; nil for what is no operator's to change.
    package let taken: JSONMember?
    package let isKept: Bool

    /// False for what is taken in changes only so that an answer can be sent back.
    package var isTaken: Bool { taken.map { !$0.isReadOnly } ?? false }

    /// The field as it is answered.
    package let get: @Sendable (Setting) -> JSONValue
    /// The field as it is kept: with its secrets.
    package let keep: @Sendable (Setting) -> JSONValue
    /// Sets the field to a value of its shape, and leaves it as it is for any other.
    package let set: @Sendable (inout Setting, JSONValue) -> Void

    package init(
        _ name: String, shown: JSONShape?, taken: JSONMember?, isKept: Bool = true,
        get: @escaping @Sendable (Setting) -> JSONValue,
        keep: (@Sendable (Setting) -> JSONValue)? = nil,
        set: @escaping @Sendable (inout Setting, JSONValue) -> Void
    ) {
        self.name = name
        self.shown = shown
        self.taken = taken
        self.isKept = isKept
        self.get = get
        self.keep = keep ?? get
        self.set = set
    }
}

/// Fields that lie at one place of the value. Those that a change must hold are `isRequired`.
extension SettingField {
    package typealias Path<Value> = any WritableKeyPath<Setting, Value> & Sendable

    private static func member(_ name: String, _ shape: JSONShape, _ isRequired: Bool) -> JSONMember {
        isRequired ? .must(name, shape) : .may(name, shape)
    }

    package static func bool(_ name: String, _ path: Path<Bool>) -> SettingField {
        SettingField(
            name, shown: .bool, taken: .may(name, .bool), get: { .bool($0[keyPath: path]) },
            set: { if case .bool(let value) = $1 { $0[keyPath: path] = value } })
    }

    package static func integer(
        _ name: String, _ path: Path<Int>, _ range: ClosedRange<Int>, isRequired: Bool = false
    ) -> SettingField {
        let shape = JSONShape.integer(Int64(range.lowerBound)...Int64(range.upperBound))
        return SettingField(
            name, shown: shape, taken: member(name, shape, isRequired),
            get: { .integer(Int64($0[keyPath: path])) },
            set: { if case .integer(let value) = $1 { $0[keyPath: path] = Int(value) } })
    }

    /// A whole number that may be missing.
    package static func integer(_ name: String, _ path: Path<Int?>, _ range: ClosedRange<Int64>)
        -> SettingField
    {
        SettingField(
            name, shown: .nullable(.count), taken: .may(name, .integer(range)),
            get: { $0[keyPath: path].map { .integer(Int64($0)) } ?? .null },
            set: { setting, value in
                switch value {
                case .null: setting[keyPath: path] = nil
                case .integer(let value): setting[keyPath: path] = Int(value)
                default: break
                }
            })
    }

    package static func number(_ name: String, _ path: Path<Double>) -> SettingField {
        SettingField(
            name, shown: .number, taken: .may(name, .number), get: { .number($0[keyPath: path]) },
            set: { if let value = $1.double { $0[keyPath: path] = value } })
    }

    /// A number that may be missing.
    package static func number(_ name: String, _ path: Path<Double?>) -> SettingField {
        SettingField(
            name, shown: .nullable(.number), taken: .may(name, .number),
            get: { $0[keyPath: path].map { .number($0) } ?? .null },
            set: { if $1 == .null || $1.double != nil { $0[keyPath: path] = $1.double } })
    }

    /// A text that may be missing.
    package static func text(_ name: String, _ path: Path<String?>, longest: Int) -> SettingField {
        SettingField(
            name, shown: .nullable(.string), taken: .may(name, .text(longest: longest)),
            get: { $0[keyPath: path].map { .string($0) } ?? .null },
            set: { setting, value in
                switch value {
                case .null: setting[keyPath: path] = nil
                case .string(let value): setting[keyPath: path] = value
                default: break
                }
            })
    }

    package static func text(_ name: String, _ path: Path<String>, longest: Int) -> SettingField {
        SettingField(
            name, shown: .string, taken: .must(name, .text(longest: longest)),
            get: { .string($0[keyPath: path]) },
            set: { if case .string(let value) = $1 { $0[keyPath: path] = value } })
    }

    /// One of several words. What cannot be read is `unreadable`, the strictest.
    package static func choice<Value: RawRepresentable & CaseIterable & Sendable>(
        _ name: String, _ path: Path<Value>, unreadable: Value
    ) -> SettingField where Value.RawValue == String {
        SettingField(
            name, shown: .choice(of: Value.self), taken: .must(name, .choice(of: Value.self)),
            get: { .string($0[keyPath: path].rawValue) },
            set: { setting, value in
                guard case .string(let word) = value else { return }
                setting[keyPath: path] = Value(rawValue: word) ?? unreadable
            })
    }

    /// A time, in milliseconds since 1970.
    package static func time(
        _ name: String, _ path: Path<Int64>, _ shape: JSONShape = .milliseconds
    ) -> SettingField {
        SettingField(
            name, shown: shape, taken: .must(name, shape), get: { .integer($0[keyPath: path]) },
            set: { if case .integer(let value) = $1 { $0[keyPath: path] = value } })
    }

    /// Several fields that are there together or not at all; those that are missing are as in `standard`. An operator sets
    /// it, or nobody but the gateway.
    package static func part<Part: SettingPart>(
        _ name: String, _ path: Path<Part?>, standard: Part, isOperators: Bool = true
    ) -> SettingField {
        SettingField(
            name, shown: .nullable(.object(Part.shown)),
            taken: isOperators ? .may(name, .object(Part.taken)) : .ignored(name, .any),
            get: { $0[keyPath: path].map(\.json) ?? .null }, keep: { $0[keyPath: path].map(\.kept) ?? .null },
            set: { setting, value in
                setting[keyPath: path] = value.members.map { members in
                    var part = standard
                    part.read(members)
                    return part
                }
            })
    }

    /// A number of the gateway's own.
    package static func own(_ name: String, _ path: Path<Int64>) -> SettingField {
        SettingField(
            name, shown: nil, taken: nil, get: { .integer($0[keyPath: path]) },
            set: { if case .integer(let value) = $1 { $0[keyPath: path] = value } })
    }

    /// A secret, kept as hexadecimal digits.
    package static func secret(_ name: String, taken: JSONMember? = nil, _ path: Path<[UInt8]>)
        -> SettingField
    {
        SettingField(
            name, shown: nil, taken: taken,
            get: { .string($0[keyPath: path].hexadecimal) },
            set: { if case .string(let text) = $1 { $0[keyPath: path] = Array(hexadecimal: text) ?? [] } })
    }
}

extension JSONValue {
    /// A number, whole or not; nil for anything else.
    package var double: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }

    /// The strings of an array; nil for anything else.
    package var strings: [String]? {
        guard case .array(let elements) = self else { return nil }
        return elements.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    /// The members of an object; nil for anything else.
    package var members: [String: JSONValue]? {
        if case .object(let members) = self { members } else { nil }
    }
}
