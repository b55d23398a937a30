extension Flag {
    static let confirm = Flag(
        "confirm", .text("APP"), help: "the app's id again, to confirm without being asked")

    static let yes = Flag("yes", help: "confirm without being asked")
}

extension Invocation {
    /// Asks the user to type the app's id, or takes it from ``Flag/confirm``. `consequence` describes the
    /// effect, such as "delete the app in ./data". Throws `usage` for another text, or without terminal and flag.
    func confirm(to consequence: String) throws {
        let typed = try value(of: .confirm) ?? io.askOpenly("Type \(app) to \(consequence)")
        guard let typed else {
            throw CommandError(
                .usage, "confirm first: \(consequence)", hint: "without a terminal, pass --confirm \(app)")
        }
        guard typed == app else {
            throw CommandError(.usage, "that is not the app's id; nothing was changed")
        }
    }

    /// Asks for confirmation, unless ``Flag/yes`` is given. `consequence` is a sentence without a full stop.
    /// Throws `usage` without a terminal, or if the answer is not yes.
    func requireYes(_ consequence: String) throws {
        if isSet(.yes) { return }
        guard let answer = io.askOpenly("\(consequence). Go on? [y/N]") else {
            throw CommandError(
                .usage, "confirm first: \(consequence)", hint: "without a terminal, pass --yes")
        }
        guard ["y", "yes"].contains(answer.lowercased()) else {
            throw CommandError(.usage, "not confirmed; nothing was changed")
        }
    }
}
