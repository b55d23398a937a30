internal import CountersignCore
internal import CountersignCrypto

/// Pseudonyms, shown to viewers instead of user ids. They differ between apps and deployments, and stay the same
/// after restarts. Without the deployment's key, they cannot be computed from a guessed id.
struct Pseudonyms: Sendable {
    private let key: [UInt8]

    init(key: [UInt8], appID: String) {
        self.key = HMACSHA256.authenticate(Array(appID.utf8), key: key)
    }

    /// A pseudonym such as `u-7f3k2m4q`, for a user id or a token's subject.
    func user(_ id: String) -> String { make("u", id) }

    /// A pseudonym such as `a-7f3k2m4q`, for an anonymous id or a device id.
    func anonymous(_ id: String) -> String { make("a", id) }

    /// 40 bits. Among a million users, a collision has a probability of about a third.
    private func make(_ kind: String, _ id: String) -> String {
        let code = HMACSHA256.authenticate(Array((kind + id).utf8), key: key)
        return kind + "-" + Base32.encode(Array(code.prefix(5))).lowercased()
    }

    static func isPseudonym(_ text: String) -> Bool {
        text.utf8.count == 10 && text.hasPrefix("u-")
            && text.utf8.dropFirst(2).allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || (UInt8(ascii: "2")...UInt8(ascii: "7")).contains($0)
            }
    }
}
