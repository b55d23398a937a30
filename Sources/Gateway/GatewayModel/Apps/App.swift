package import CountersignCore
public import CountersignJOSE

/// An app: the unit that keys, enforcement and events belong to.
public struct App: Sendable, Identifiable {
    /// The name in commands: 1 to 64 lower-case letters, digits, `-` and `_`, not beginning with `-`.
    public let id: String
    /// The display name.
    public var name: String
    /// How strictly tokens are enforced.
    public var enforcement: Enforcement
    /// The app's requirements for its tokens.
    public var policy: ClaimsPolicy
    /// The public keys, the primary one first; at most three.
    public var keys: [AppKey]
    /// Creation time, in milliseconds since 1970.
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

/// A public key of an app.
public struct AppKey: Sendable, Identifiable {
    /// The position of a key in its app.
    public enum Slot: Int, Sendable {
        /// Tried first, unless a token names another key. Cannot be deleted while another key exists.
        case primary = 1
        /// The second key.
        case secondary = 2
        /// The third key.
        case tertiary = 3
    }

    /// The RFC 7638 thumbprint, which names the key in commands and reports.
    public let id: String
    /// The position of the key.
    public var slot: Slot
    /// The operator's note; may be empty.
    public var description: String
    /// The public key as added: PEM, or a JWK as JSON.
    public let text: String
    /// Milliseconds since 1970 when the key was added.
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
    package var json: JSONValue {
        ["id": .string(id), "slot": .integer(Int64(slot.rawValue)), "description": .string(description)]
    }
}
