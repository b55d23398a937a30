struct CommandSection: Sendable {
    let title: String
    /// The first word of each command, and the description of a group; nil for a single command.
    let words: KeyValuePairs<String, String?>

    /// The commands that the first week with the gateway needs.
    static let firstWeek: Set = [
        "serve", "dev", "dashboard", "send", "tail", "doctor", "app", "key", "token", "enforcement", "event",
        "webhook",
    ]

    static let all: [CommandSection] = [
        CommandSection(
            title: "Run and try",
            words: [
                "serve": nil, "dev": nil, "dashboard": nil, "demo": nil, "send": nil, "tail": nil,
                "listen": nil,
                "trigger": nil, "doctor": nil, "self-check": nil,
            ]),
        CommandSection(
            title: "Apps and their tokens",
            words: [
                "app": "Apps: create, list, delete; web pages, retention, token lifetimes",
                "write-key": "Keys that clients send with",
                "key": "Public keys that verify tokens; key pairs",
                "token": "Sign, verify and decode a user's token",
                "enforcement": "How strictly tokens are checked",
                "user": "Block, limit or sign out one user or device",
                "policy": "What an app requires of its tokens",
                "project": "An app's settings for clients of the Bloomreach dialect",
            ]),
        CommandSection(
            title: "Events",
            words: [
                "event": "List and export events", "sample": "Requests whose token failed verification",
                "consumer": "Backends that pull events",
                "webhook": "Addresses that events are delivered to",
                "stream": "Streams that events are published to",
                "files": "Hourly files that events are written to",
                "customer": "What is stored about a person",
            ]),
        CommandSection(
            title: "Token service",
            words: [
                "client": "Clients of the token service", "session": "Sessions and their refresh tokens",
                "signing-key": "The gateway's own keys",
            ]),
        CommandSection(
            title: "Operation",
            words: [
                "admin": "Users of the dashboard, API tokens, a lost password", "audit": "Who changed what",
                "backup": "Copies of the data directory", "copy": nil, "migrate": nil,
                "cluster": "The gateways that share a database",
                "config": "The settings that `serve` would run with",
            ]),
        CommandSection(
            title: "This command line",
            words: [
                "profile": "Gateways to work on, under a name", "completion": nil,
                "complete": nil, "man": nil, "version": nil, "help": nil,
            ]),
    ]
}
