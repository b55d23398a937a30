/// An argument that is told by its place.
struct Positional: Sendable, Equatable {
    enum Count: Sendable, Equatable {
        case one
        case optional
        /// None or more; only the last one of a command.
        case any
    }

    /// In capitals, as help shows it.
    let name: String
    let count: Count
    /// The words that it takes; nil when any text will do.
    let choices: [String]?
    /// One line for help.
    let help: String

    init(_ name: String, _ count: Count = .one, choices: [String]? = nil, help: String) {
        self.name = name
        self.count = count
        self.choices = choices
        self.help = help
    }

    /// The app that a command works on.
    static let app = Positional("APP", help: "the app's id")

    /// `FILE`, `[FILE]` or `[FILE...]`.
    var usage: String {
        switch count {
        case .one: name
        case .optional: "[\(name)]"
        case .any: "[\(name)...]"
        }
    }
}
