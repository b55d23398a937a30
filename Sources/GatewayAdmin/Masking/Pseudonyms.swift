internal import CountersignCore
internal import CountersignJOSE

/// Names that stand for the users of one app before those who need not know them.
///
/// The same user has the same pseudonym in every answer and after every restart; another app, and another gateway, has
/// another one for it. Without the gateway's key nobody can go from one to the other, or try out likely ids.
struct Pseudonyms: Sendable {
    private let key: [UInt8]

    init(key: [UInt8], appID: String) {
        self.key = HMACSHA256.authenticate(Array(appID.utf8), key: key)
    }

    /// Such as `u-7f3k2m4q`, for a user id or what stands for a user in a token.
    func user(_ id: String) -> String { make("u", id) }

    /// Such as `a-7f3k2m4q`, for the id of somebody who has not signed in, or of a device.
    func anonymous(_ id: String) -> String { make("a", id) }

    /// Forty bits: that any two of a million users share one has a probability of about a third.
    private func make(_ kind: String, _ id: String) -> String {
        let code = HMACSHA256.authenticate(Array((kind + id).utf8), key: key)
        return kind + "-" + Base32.encode(Array(code.prefix(5))).lowercased()
    }

    /// True for text that could be a user's pseudonym.
    static func isPseudonym(_ text: String) -> Bool {
        text.utf8.count == 10 && text.hasPrefix("u-")
            && text.utf8.dropFirst(2).allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || (UInt8(ascii: "2")...UInt8(ascii: "7")).contains($0)
            }
    }
}
