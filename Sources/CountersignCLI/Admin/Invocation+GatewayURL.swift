internal import CountersignGateway
internal import Foundation
internal import GatewayStorage

extension Flag {
    /// Where the gateway is reached by clients, which need no API token.
    static let url = Flag(
        "server", .text("URL"), environment: "COUNTERSIGN_URL",
        help: "the gateway's URL; default: the gateway that runs on the data directory")
}

extension Invocation {
    /// `--server`, else the gateway that runs on the data directory; `note` is said too when none runs.
    func gatewayURL(note: String? = nil) throws -> URL {
        let text: String
        if let given = try value(of: .url) {
            text = given
        } else {
            let place = try storagePlace()
            guard let running = try place.runningGateway() else {
                throw CommandError(
                    .unavailable, "no gateway runs on \(place)" + (note.map { "; \($0)" } ?? ""),
                    hint: "start one with `countersign serve`, or give \(note == nil ? "--server" : "--data")"
                )
            }
            text = running.url
        }
        return try Self.gatewayURL(text)
    }

    /// Throws `usage`.
    static func gatewayURL(_ text: String) throws(CommandError) -> URL {
        guard let url = URL(string: text), ["http", "https"].contains(url.scheme), url.host != nil else {
            throw CommandError(.usage, "--server takes a URL such as http://127.0.0.1:8787, not '\(text)'")
        }
        return url
    }
}
