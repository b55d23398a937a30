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
        /// A time within limits in whole units: a number of them, or with a unit of its own such as `90s`, `2h`, `7d`.
        case duration(Quantity.Time, ClosedRange<Int>)
        /// A size within limits in bytes: a number, or with a unit such as `500MB`, `10GB`, `1GiB`.
        case size(ClosedRange<Int>)
    }

    /// Without the leading dashes.
    let name: String
    /// Its other name after a single dash; nil for most.
    let letter: Character?
    let value: Value
    /// One line for help.
    let help: String
    /// Taken when the flag is not given; nil when then there is no value.
    let defaultValue: String?
    /// The environment variable that is read when the flag is not given; it wins over the default.
    let environment: String?
    /// Whether a text may be empty; of most flags that is a variable which the shell did not have.
    let mayBeEmpty: Bool
    /// How often it may be given; see ``Invocation/values(of:)``.
    let maximumCount: Int

    init(
        _ name: String, _ value: Value = .none, letter: Character? = nil, default defaultValue: String? = nil,
        environment: String? = nil, mayBeEmpty: Bool = false, maximumCount: Int = 1,
        help: String
    ) {
        self.name = name
        self.letter = letter
        self.value = value
        self.help = help
        self.defaultValue = defaultValue
        self.environment = environment
        self.mayBeEmpty = mayBeEmpty
        self.maximumCount = maximumCount
    }

    /// `--port PORT`, or `-o, --output WORD`, as help shows it.
    var usage: String {
        let names = (letter.map { "-\($0), " } ?? "") + "--\(name)"
        return switch value {
        case .none: names
        case .text(let word), .path(let word), .integer(let word, _): "\(names) \(word)"
        case .choice(let words): "\(names) \(words.joined(separator: "|"))"
        case .duration: "\(names) DURATION"
        case .size: "\(names) SIZE"
        }
    }

    /// The value as commands take it: a time as a number of the flag's units, a size as a number of bytes, else the text.
    /// The text must be a value of this flag.
    func plain(_ text: String) -> String {
        switch value {
        case .duration(let unit, _): Quantity.duration(text, in: unit).map { String($0) } ?? text
        case .size: Quantity.size(text).map { String($0) } ?? text
        default: text
        }
    }

    /// The opposite of ``plain(_:)``: a time or a size with its unit, else the text. 0 needs none.
    func withUnit(_ text: String) -> String {
        guard let number = Int64(text), number != 0 else { return text }
        return switch value {
        case .duration(let unit, _): Quantity.text(seconds: number * Int64(unit.inSeconds))
        case .size: Quantity.text(bytes: number)
        default: text
        }
    }

    /// Says what is wrong with `text` as this flag's value; nil when it is right.
    func problem(with text: String) -> String? {
        switch value {
        case .none: return nil
        case .text: return text.isEmpty && !mayBeEmpty ? "--\(name) is empty" : nil
        case .path: return text.isEmpty ? "--\(name) needs a path that is not empty" : nil
        case .choice(let words):
            guard !words.contains(text) else { return nil }
            return "--\(name) takes \(words.joined(separator: ", ")), not '\(text)'"
        case .integer(_, let range):
            if let number = Int(text), range.contains(number) { return nil }
            return
                "--\(name) takes a whole number from \(range.lowerBound) to \(range.upperBound), not '\(text)'"
        case .duration(let unit, let range):
            if let number = Quantity.duration(text, in: unit), range.contains(number) { return nil }
            return
                "--\(name) takes \(range.lowerBound) to \(range.upperBound) \(unit.rawValue), or a time such as \(unit.examples), not '\(text)'"
        case .size(let range):
            if let number = Quantity.size(text), range.contains(number) { return nil }
            return
                "--\(name) takes \(range.lowerBound) to \(range.upperBound) bytes, or a size such as 500MB or 10GB, not '\(text)'"
        }
    }
}
