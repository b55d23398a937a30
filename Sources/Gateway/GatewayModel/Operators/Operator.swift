internal import CountersignCore
internal import Foundation

/// The author of a change, as in the audit log.
public struct Operator: Sendable, Equatable {
    /// A user of the admin page, `token:` with an API token's name, `#` and its id, `cli:` with an account of
    /// this machine, or `gateway`.
    public let name: String
    /// The role: `owner`, `operator`, `viewer`, `reader` for a reader's token, or `system` for the gateway itself.
    public let role: String

    /// - Parameters:
    ///   - name: The name in the audit log.
    ///   - role: The role.
    public init(name: String, role: String) {
        self.name = name
        self.role = role
    }

    /// The account that runs this process, which owns the data directory.
    public static var account: Operator { Operator(name: "cli:" + NSUserName(), role: "owner") }

    package static let schedule = Operator(name: "gateway", role: "system")
}
