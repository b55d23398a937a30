struct Positional: Sendable, Equatable {
    enum Count: Sendable, Equatable {
        case one
        case optional
        /// Zero or more. Only as the last positional of a command.
        case any
    }

    let name: String
    let count: Count
    /// The accepted words; nil accepts any text.
    let choices: [String]?
    let completes: Candidates?
    /// Whether a word may be empty. For most commands it indicates an unset shell variable.
    let mayBeEmpty: Bool
    let help: String

    init(
        _ name: String, _ count: Count = .one, choices: [String]? = nil, completes: Candidates? = nil,
        mayBeEmpty: Bool = false, help: String
    ) {
        self.name = name
        self.count = count
        self.choices = choices
        self.completes = completes
        self.mayBeEmpty = mayBeEmpty
        self.help = help
    }

    static let app = Positional("APP", completes: .apps, help: "the app's id")

    var usage: String {
        switch count {
        case .one: name
        case .optional: "[\(name)]"
        case .any: "[\(name)...]"
        }
    }
}
