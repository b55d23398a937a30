internal import CountersignJSON

/// A JWK Set (RFC 7517, section 5), as published by an identity provider.
public struct JWKSet: Sendable {
    /// A member of a set: a usable key, or the reason why it is not usable.
    public struct Member: Sendable {
        /// The member's `kid`; nil if it has none. A set made from keys has the thumbprint instead of nil.
        public let kid: String?
        /// The key; nil if it can't be used.
        public let key: PublicKey?
        /// Why the key can't be used; nil if it can.
        public let problem: JOSEError?
    }

    /// All members in the order of the document, including unusable ones.
    public let members: [Member]

    /// The usable keys. Other members, such as encryption keys, are omitted (RFC 7517, section 5).
    public var keys: [PublicKey] { members.compactMap(\.key) }

    /// Parses a set.
    ///
    /// - Parameter json: An object with a `keys` array of at most 64 members; at most 256 KiB.
    /// - Throws: ``JOSEError`` with code `unreadableKey` if it is not a set, `tooManyKeys` for more than 64 members,
    ///   or `secretKey` for a private or symmetric key, because such a document must not be public.
    public init(json: String) throws(JOSEError) {
        let read: [Result<JWKFields, JOSEError>]
        let kids: [String?]
        do {
            (read, kids) = try StrictJSONParser(maximumBytes: 262_144, maximumDepth: 16)
                .parse(bytes: Array(json.utf8)) { root in
                    guard let list = root["keys"], list.kind == .array else {
                        throw JOSEError(.unreadableKey, "a JWK Set is an object with a keys array")
                    }
                    let nodes = Array(list.elements)
                    guard nodes.count <= 64 else {
                        throw JOSEError(.tooManyKeys, "the set has more than 64 keys")
                    }
                    let fields = nodes.map { node in
                        Result { () throws(JOSEError) in try JWKFields(node) }
                    }
                    return (fields, nodes.map { $0["kid"]?.string })
                }
        } catch let error as JOSEError {
            throw error
        } catch {
            throw JOSEError(.unreadableKey, "the JWK Set is not one JSON object without duplicate members")
        }
        var members: [Member] = []
        for (kid, result) in zip(kids, read) {
            do throws(JOSEError) {
                members.append(Member(kid: kid, key: try PublicKey(result.get()), problem: nil))
            } catch {
                if error.code == .secretKey { throw error }
                members.append(Member(kid: kid, key: nil, problem: error))
            }
        }
        self.members = members
    }

    /// Creates a set of keys to publish.
    public init(keys: [PublicKey]) {
        members = keys.map { Member(kid: $0.kid ?? $0.thumbprint, key: $0, problem: nil) }
    }

    /// The usable keys as a JWK Set document in JSON.
    public var json: String { #"{"keys":["# + keys.map(\.jwk).joined(separator: ",") + "]}" }
}
