internal import CountersignCore
internal import Foundation

/// Who changes something, as the audit log has it.
public struct Operator: Sendable, Equatable {
    /// A user of the admin page, `token:`, an API token's name, `#` and its id, or `cli:` and an account of this machine.
    public let name: String
    /// What that one may do: `owner`, `operator`, `viewer`, or `system` for the gateway itself.
    public let role: String

    /// - Parameters:
    ///   - name: Who it is.
    ///   - role: What it may do.
    public init(name: String, role: String) {
        self.name = name
        self.role = role
    }

    /// The account that this program runs as, which owns the data directory.
    public static var account: Operator { Operator(name: "cli:" + NSUserName(), role: "owner") }

    /// The gateway itself, which does what was asked of it before.
    package static let schedule = Operator(name: "gateway", role: "system")
}
