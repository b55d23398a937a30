package import CountersignCore

package protocol SettingPart: Sendable {
    static var fields: [JSONField<Self>] { get }
}

/// A named setting of an app, composed of fields.
///
/// Each field declares its name, its JSON shape, and how to get and set it. The stored row, audit log entries, admin
/// API responses, the validation of changes and the API document derive from the fields.
package protocol AppSetting: SettingPart {
    static var settingName: String { get }
    static func standard(for appID: String) -> Self
    /// Whether the setting is absent until an operator sets it. ``standard(for:)`` is then only the base for
    /// reading its fields.
    static var mayBeMissing: Bool { get }
    static var action: String { get }
    /// Rejects combinations of fields that are not valid together.
    func check() throws(GatewayError)
}

extension SettingPart {
    /// Sets the fields named in `members`, including those with null.
    package mutating func set(_ members: JSONObject) {
        for field in Self.fields where field.isTaken {
            if let value = members[field.name] { field.set(&self, value) }
        }
    }

    /// The value as in responses, without secrets.
    package var json: JSONValue { .object(members) }

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

    /// The value as stored, with secrets.
    package var kept: JSONValue {
        .object(
            JSONObject(uniqueKeysWithValues: Self.fields.filter(\.isKept).map { ($0.name, $0.keep(self)) }))
    }

    mutating func read(_ members: JSONObject) {
        for field in Self.fields where field.isKept {
            if let value = members[field.name] { field.set(&self, value) }
        }
    }

    package static var shown: [JSONMember] {
        fields.compactMap { field in field.shown.map { .must(field.name, $0) } }
    }

    package static var taken: [JSONMember] { fields.compactMap(\.taken) }
}

extension AppSetting {
    package static var mayBeMissing: Bool { false }
    package static var action: String { settingName + ".set" }

    package func check() throws(GatewayError) {}

    /// Reads a stored value. Fields that the value lacks, because a later version added them, get their default.
    package init(kept members: JSONObject, for appID: String) {
        self = Self.standard(for: appID)
        read(members)
    }

    /// Sets every field that a change may contain. Fields missing from `members` get their default.
    package mutating func replace(with members: JSONObject, for appID: String) {
        let standard = Self.standard(for: appID)
        for field in Self.fields where field.isTaken { field.set(&self, field.get(standard)) }
        set(members)
    }

    /// Rejects a value that no valid change could have produced.
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
    /// An optional group of fields. Members missing from a present group come from `standard`. With
    /// `isOperators` false, only the gateway sets the group.
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
