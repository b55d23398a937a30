package import CountersignCore

/// A value that is made of fields.
package protocol SettingPart: Sendable {
    static var fields: [JSONField<Self>] { get }
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
    /// Sets the fields that are named, null too.
    package mutating func set(_ members: JSONObject) {
        for field in Self.fields where field.isTaken {
            if let value = members[field.name] { field.set(&self, value) }
        }
    }

    /// The value as responses show it, without secrets.
    package var json: JSONValue { .object(members) }

    /// The value as the audit log stores it.
    package var audited: JSONValue {
        .object(
            JSONObject(
                uniqueKeysWithValues: Self.fields.filter { $0.shown != nil }.map { ($0.name, $0.audit(self)) }
            ))
    }

    package var members: JSONObject {
        JSONObject(
            uniqueKeysWithValues: Self.fields.filter { $0.shown != nil }.map { ($0.name, $0.get(self)) })
    }

    /// The value as it is kept.
    package var kept: JSONValue {
        .object(
            JSONObject(uniqueKeysWithValues: Self.fields.filter(\.isKept).map { ($0.name, $0.keep(self)) }))
    }

    /// Takes over kept members.
    mutating func read(_ members: JSONObject) {
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
    package init(kept members: JSONObject, for appID: String) {
        self = Self.standard(for: appID)
        read(members)
    }

    /// Sets every field that a change may hold: to what is standard where it is not named.
    package mutating func replace(with members: JSONObject, for appID: String) {
        let standard = Self.standard(for: appID)
        for field in Self.fields where field.isTaken { field.set(&self, field.get(standard)) }
        set(members)
    }

    /// Refuses a value that no change could have made.
    package func checkFields() throws(GatewayError) {
        do throws(ShapeMismatch) {
            let taken = Self.fields.filter { $0.isTaken && $0.shown != nil }
            try JSONShape.check(
                JSONObject(uniqueKeysWithValues: taken.map { ($0.name, $0.get(self)) }),
                taken.compactMap(\.taken))
        } catch {
            throw GatewayError(.invalid, "\(error.path) \(error.detail)", member: error.path)
        }
        try check()
    }
}

extension JSONField {
    /// Several fields that are there together or not at all; those that are missing are as in `standard`. An operator sets
    /// it, or nobody but the gateway.
    package static func part<Part: SettingPart>(
        _ name: String, _ path: Path<Part?>, standard: Part, isOperators: Bool = true
    ) -> JSONField {
        JSONField(
            name, shown: .nullable(.object(Part.shown)),
            taken: isOperators ? .may(name, .object(Part.taken)) : .ignored(name, .any),
            get: { $0[keyPath: path].map(\.json) ?? .null }, keep: { $0[keyPath: path].map(\.kept) ?? .null },
            audit: { $0[keyPath: path].map(\.audited) ?? .null },
            set: { setting, value in
                setting[keyPath: path] = value.members.map { members in
                    var part = standard
                    part.read(members)
                    return part
                }
            })
    }
}
