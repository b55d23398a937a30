/// The public keys of one app, in order: primary, secondary, tertiary.
///
/// A value type, so that a request uses the same keys from start to end while an operator changes them.
public struct KeyRing: Sendable {
    /// The maximum number of the app's own keys.
    public static let maximumKeys = 3

    /// A key with its name and state.
    public struct Entry: Sendable {
        /// The name given by the owner, unique in the ring. A token may name it in `kid`.
        public let id: String
        /// The key; nil if it can't be used.
        public let key: PublicKey?
        /// Why the key can't be used; nil if it can.
        public let problem: JOSEError?
        /// The issuers whose tokens the key verifies, without a final `/`; empty for any issuer.
        ///
        /// Prevents one identity provider from signing tokens that name another provider as issuer.
        public let issuers: [String]

        /// Creates an entry with a usable key.
        ///
        /// - Parameters:
        ///   - id: The name given by the owner.
        ///   - key: The key.
        ///   - issuers: The issuers whose tokens the key verifies, without a final `/`; empty for any issuer.
        public init(id: String, key: PublicKey, issuers: [String] = []) {
            self.id = id
            self.key = key
            self.issuers = issuers
            problem = nil
        }

        /// Creates an entry from text, even if the text is not a usable key.
        ///
        /// - Parameters:
        ///   - id: The name given by the owner.
        ///   - text: PEM or JWK.
        ///   - algorithm: Binds the key to this algorithm; nil uses the key's own.
        public init(id: String, text: String, algorithm: JWSAlgorithm? = nil) {
            self.id = id
            issuers = []
            do throws(JOSEError) {
                key = try PublicKey(text: text, algorithm: algorithm)
                problem = nil
            } catch {
                key = nil
                problem = error
            }
        }
    }

    /// The maximum number of published keys.
    public static let maximumPublished = 32

    /// The app's own keys, primary first, followed by published keys.
    public let entries: [Entry]

    /// Creates a ring. A ring without keys accepts no token (code 27).
    ///
    /// - Parameters:
    ///   - entries: The app's own keys, primary first. Keys after the third are ignored.
    ///   - published: The keys of external JWK Sets. Keys after the 32nd are ignored.
    public init(entries: [Entry], published: [Entry] = []) {
        self.entries = Array(entries.prefix(Self.maximumKeys)) + published.prefix(Self.maximumPublished)
    }
}
