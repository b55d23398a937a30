package import CountersignCore
public import CountersignJOSE

/// One app: the unit that keys, enforcement and events belong to.
public struct App: Sendable, Identifiable {
    /// What the app is called in commands, 1 to 64 lower-case letters, digits, `-` and `_`.
    public let id: String
    /// What people call it.
    public var name: String
    /// How strictly its requests are judged.
    public var enforcement: Enforcement
    /// What its tokens must look like.
    public var policy: ClaimsPolicy
    /// Its public keys, the primary one first; at most three.
    public var keys: [AppKey]
    /// Milliseconds since 1970 when it was made.
    public let createdMilliseconds: Int64

    package init(
        id: String, name: String, enforcement: Enforcement, policy: ClaimsPolicy, keys: [AppKey],
        createdMilliseconds: Int64
    ) {
        self.id = id
        self.name = name
        self.enforcement = enforcement
        self.policy = policy
        self.keys = keys
        self.createdMilliseconds = createdMilliseconds
    }
}

/// One of an app's public keys (seed 003, "Managing public keys").
public struct AppKey: Sendable, Identifiable {
    /// Where a key stands in its app.
    public enum Slot: Int, Sendable {
        /// Tried first; cannot be deleted while another key exists.
        case primary = 1
        /// The second key.
        case secondary = 2
        /// The third key.
        case tertiary = 3
    }

    /// What the key is called in commands and reports: its RFC 7638 thumbprint.
    public let id: String
    /// Where it stands.
    public var slot: Slot
    /// What the operator noted; empty when nothing.
    public var description: String
    /// The public key as it was given: PEM, or a JWK as JSON.
    public let text: String
    /// Milliseconds since 1970 when it was added.
    public let addedMilliseconds: Int64

    package init(id: String, slot: Slot, description: String, text: String, addedMilliseconds: Int64) {
        self.id = id
        self.slot = slot
        self.description = description
        self.text = text
        self.addedMilliseconds = addedMilliseconds
    }
}

extension AppKey {
    /// The key as the audit log has it.
    package var json: JSONValue {
        ["id": .string(id), "slot": .integer(Int64(slot.rawValue)), "description": .string(description)]
    }
}
