internal import CountersignCrypto
internal import GatewayModel

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
        return "sha256-" + Array(digest.prefix(16)).hexadecimal + (occurrence == 0 ? "" : "-\(occurrence)")
    }
}
