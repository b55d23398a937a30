internal import Foundation
internal import GatewayModel

enum Loopback {
    /// Whether a URL's host is a loopback address or `localhost`; `127.example.com` is not.
    static func isHost(_ host: String) -> Bool {
        let bare = host.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
        return bare == "localhost" || bare == "::1" || bare.hasPrefix("127.") && NetworkAddress(bare) != nil
    }
}
