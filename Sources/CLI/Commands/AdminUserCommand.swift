internal import CountersignCore
internal import GatewayModel

enum AdminUserCommand {
    static let commands = [create, list, setRole, setPassword, resetSecondFactor, delete]

    private static let name = Positional(
        "NAME", completes: .list("users", member: "name"), help: "the name to sign in with, without spaces")
    private static let roles = AdminRole.allCases.map(\.rawValue)
    private static let role = Flag(
        "role", .choice(roles), default: AdminRole.viewer.rawValue,
        help: "viewer: reads; operator: changes apps, keys and rules; owner: also users, tokens and backups")
    private static let newRole = Positional("ROLE", choices: roles, help: roles.joined(separator: ", "))
    private static let password = Flag(
        "password-file", .path("FILE"),
        help: "at least 12 bytes, not a common one; - reads standard input; asked for at a terminal")

    private static let create = Command(
        "admin user create", summary: "Create a dashboard user",
        details:
            "The password comes from --password-file, a prompt or standard input, never from an argument.",
        positionals: [name], flags: [role, password, .json] + Flag.target,
        examples: [
            "A read-only user":
                "countersign admin user create alice --role viewer --password-file password.txt"
        ]
    ) { invocation in
        let secret = try invocation.secret(of: password, asking: "Password", isNew: true)
        let user = try await invocation.admin().post(
            "users",
            body: [
                "name": .string(invocation[name]), "role": try invocation.json(of: role) ?? .null,
                "password": .string(secret),
            ])
        if invocation.printsJSON { try invocation.io.print(user) }
        invocation.io.say("Created the \(user["role"].shown) \(user["name"].shown).")
    }

    private static let list = Command(
        "admin user list", summary: "List the dashboard's users", flags: [.json] + Flag.target,
        examples: ["Who may sign in?": "countersign admin user list"]
    ) { invocation in
        try invocation.printList(
            try await invocation.admin().items("users"),
            [
                "NAME": "name", "ROLE": "role", "SECOND FACTOR": "second_factor", "CREATED": "created_ms",
                "LAST SIGN-IN": "last_sign_in_ms",
            ],
            empty: "No user. Next: countersign admin reset")
    }

    private static let setRole = Command(
        "admin user set-role", summary: "Set what a dashboard user may do",
        positionals: [name, newRole], flags: Flag.target,
        examples: ["Allow a user to change keys": "countersign admin user set-role kim operator"]
    ) { invocation in
        let user = try await invocation.admin().patch(
            "users", invocation[name],
            body: ["role": .string(invocation[newRole])])
        invocation.io.say("\(user["name"].shown) is \(user["role"].shown) now.")
    }

    private static let setPassword = Command(
        "admin user set-password", summary: "Give a dashboard user a new password",
        details: "The user's sessions end.", positionals: [name], flags: [password] + Flag.target,
        examples: ["A new one": "countersign admin user set-password kim --password-file password.txt"]
    ) { invocation in
        let secret = try invocation.secret(of: password, asking: "New password", isNew: true)
        let user = try await invocation.admin().patch(
            "users", invocation[name], body: ["password": .string(secret)])
        invocation.io.say("\(user["name"].shown) has a new password.")
    }

    private static let resetSecondFactor = Command(
        "admin user reset-second-factor",
        summary: "Remove the second factor of a dashboard user who has lost it",
        details: "The password alone is enough then, until another is set up. The user's sessions end.",
        positionals: [name], flags: Flag.target,
        examples: [
            "The phone and the recovery codes are lost": "countersign admin user reset-second-factor kim"
        ]
    ) { invocation in
        let name = invocation[name]
        try await invocation.admin().delete("users", name, "second-factor")
        invocation.io.say("\(name) can now sign in with just the password.")
    }

    private static let delete = Command(
        "admin user delete", summary: "Delete a dashboard user and end their sessions",
        positionals: [name], flags: Flag.target,
        examples: ["A former employee": "countersign admin user delete kim"]
    ) { invocation in
        let name = invocation[name]
        try await invocation.admin().delete("users", name)
        invocation.io.say("Deleted \(name).")
    }
}
