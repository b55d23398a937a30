internal import CountersignGateway
internal import Foundation
internal import GatewayStorage

extension Flag {
    static let url = Flag(
        "server", .text("URL"), environment: "COUNTERSIGN_URL",
        help: "the gateway's URL; default: the gateway running on the data directory")
}

extension Invocation {
    /// Throws `usage`. The error omits the text, which may hold a password.
    static func gatewayURL(_ text: String) throws(CommandError) -> URL {
        guard let url = URL(string: text), ["http", "https"].contains(url.scheme), url.host != nil,
            url.user == nil
        else {
            throw CommandError(
                .usage, "--server takes a URL such as http://127.0.0.1:8787, without a user")
        }
        return url
    }

    /// The gateway to use. In order of precedence: `--profile`; `--server` or the gateway of `--data`; the
    /// environment; the profile in use; the gateway that runs on the account's data directory.
    func destination() throws -> (url: URL, profile: Profile?) {
        let flags: [Flag] = [.url] + Flag.location
        if let name = flagValues[Flag.profile.name]?.last {
            guard flags.allSatisfy({ flagValues[$0.name] == nil }) else {
                throw CommandError(
                    .usage, "more than one gateway was given",
                    hint: "give one of --server, --profile, --data and --database")
            }
            let profile = try Profiles(environment: io.environment).named(name)
            return (try Self.gatewayURL(profile.server), profile)
        }
        let isGiven = flags.contains {
            flagValues[$0.name] != nil || $0.environment.flatMap(io.variable) != nil
        }
        if !isGiven {
            let profiles = try Profiles(environment: io.environment)
            if let profile = try value(of: .profile).map(profiles.named) ?? profiles.inUse {
                return (try Self.gatewayURL(profile.server), profile)
            }
        }
        let isLocal = Flag.location.contains { flagValues[$0.name] != nil }
        let server = isLocal ? flagValues[Flag.url.name]?.last : try value(of: .url)
        return (try Self.gatewayURL(server ?? storageLocation().requireRunningGateway().url), nil)
    }
}
