/// The public keys of one app, in order: primary, secondary, tertiary.
///
/// A value: whoever judges a request holds one ring from beginning to end, also while an operator changes it.
public struct KeyRing: Sendable {
    /// How many keys a ring holds at most.
    public static let maximumKeys = 3

    /// One place of the ring.
    public struct Entry: Sendable {
        /// The owner's name for the key; unique in the ring. A token's `kid` may carry it.
        public let id: String
        /// The key; nil if it can't be used.
        public let key: PublicKey?
        /// Why the key can't be used; nil if it can.
        public let problem: JOSEError?

        /// An entry with a key that can be used.
        ///
        /// - Parameters:
        ///   - id: The owner's name for the key.
        ///   - key: The key.
        public init(id: String, key: PublicKey) {
            self.id = id
            self.key = key
            problem = nil
        }

        /// An entry from text, kept also when the text is no usable key.
        ///
        /// - Parameters:
        ///   - id: The owner's name for the key.
        ///   - text: PEM or JWK.
        ///   - algorithm: Binds the key to this algorithm; nil leaves what the key itself says.
        public init(id: String, text: String, algorithm: JWSAlgorithm? = nil) {
            self.id = id
            do throws(JOSEError) {
                key = try PublicKey(text: text, algorithm: algorithm)
                problem = nil
            } catch {
                key = nil
                problem = error
            }
        }
    }

    /// How many keys that others publish a ring holds at most.
    public static let maximumPublished = 16

    /// The entries, the primary first, then those that others publish.
    public let entries: [Entry]

    /// A ring of at most three keys and those of a published set; without any, every token answers 27.
    ///
    /// - Parameters:
    ///   - entries: The primary first. Those after the third are left out.
    ///   - published: The keys of a JWK Set that somebody else keeps; those after the sixteenth are left out.
    public init(entries: [Entry], published: [Entry] = []) {
        self.entries = Array(entries.prefix(Self.maximumKeys)) + published.prefix(Self.maximumPublished)
    }
}
