/// A named option of a command: `--port 8787`, `--port=8787`, or a switch such as `--json`.
struct Flag: Sendable, Equatable {
    /// What follows the name.
    enum Value: Sendable, Equatable {
        /// Nothing: the flag is there or it is not.
        case none
        /// Any text; the word stands for it in help.
        case text(String)
        /// A path of a file or folder; the word stands for it in help.
        case path(String)
        /// One of these words.
        case choice([String])
        /// A whole number within limits; the word stands for it in help.
        case integer(String, ClosedRange<Int>)
    }

    /// Without the leading dashes.
    let name: String
    let value: Value
    /// One line for help.
    let help: String
    /// Taken when the flag is not given; nil when then there is no value.
    let defaultValue: String?
    /// The environment variable that is read when the flag is not given; it wins over the default.
    let environment: String?
    /// How often it may be given; see ``Invocation/values(of:)``.
    let maximumCount: Int

    init(
        _ name: String, _ value: Value = .none, default defaultValue: String? = nil,
        environment: String? = nil, maximumCount: Int = 1,
        help: String
    ) {
        self.name = name
        self.value = value
        self.help = help
        self.defaultValue = defaultValue
        self.environment = environment
        self.maximumCount = maximumCount
    }

    /// `--port PORT`, as help shows it.
    var usage: String {
        switch value {
        case .none: "--\(name)"
        case .text(let word), .path(let word), .integer(let word, _): "--\(name) \(word)"
        case .choice(let words): "--\(name) \(words.joined(separator: "|"))"
        }
    }

    /// Says what is wrong with `text` as this flag's value; nil when it is right.
    func problem(with text: String) -> String? {
        switch value {
        case .none, .text: return nil
        case .path: return text.isEmpty ? "--\(name) needs a path that is not empty" : nil
        case .choice(let words):
            guard !words.contains(text) else { return nil }
            return "--\(name) takes \(words.joined(separator: ", ")), not '\(text)'"
        case .integer(_, let range):
            if let number = Int(text), range.contains(number) { return nil }
            return
                "--\(name) takes a whole number from \(range.lowerBound) to \(range.upperBound), not '\(text)'"
        }
    }
}
