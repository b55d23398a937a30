internal import CountersignCrypto

/// Message ids for events that clients send without ids. The ids derive from the content, so a repeated request
/// has the same ids. Equal events within one request have different ids.
struct DerivedMessageIDs {
    private let namespace: String
    private var seen: [[UInt8]: Int] = [:]

    init(namespace: String) {
        self.namespace = namespace
    }

    mutating func make(_ json: ArraySlice<UInt8>) -> String {
        let digest = SHA256.digest(Array(namespace.utf8) + [0] + json)
        let occurrence = seen[digest, default: 0]
        seen[digest] = occurrence + 1
        let letters = Array("0123456789abcdef".utf8)
        let text = digest.prefix(16).flatMap { [letters[Int($0 >> 4)], letters[Int($0 & 0xF)]] }
        return "sha256-" + String(decoding: text, as: UTF8.self) + (occurrence == 0 ? "" : "-\(occurrence)")
    }
}
