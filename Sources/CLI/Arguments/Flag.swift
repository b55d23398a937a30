struct Flag: Sendable, Equatable {
    enum Value: Sendable, Equatable {
        case none
        /// Any text. Help shows the given word.
        case text(String)
        /// The path of a file or folder. Help shows the given word.
        case path(String)
        case choice([String])
        /// An integer within limits. Help shows the given word.
        case integer(String, ClosedRange<Int>)
        /// A duration within limits in whole units: a plain number, or with a unit such as `90s`, `2h`, `7d`.
        case duration(Quantity.Time, ClosedRange<Int>)
        /// A size within limits in bytes: a plain number, or with a unit such as `500MB`, `10GB`, `1GiB`.
        case size(ClosedRange<Int>)
    }

    let name: String
    let letter: Character?
    let value: Value
    let help: String
    let defaultValue: String?
    /// The environment variable that is used if the flag is not given. It overrides the default.
    let environment: String?
    /// Whether an empty text is allowed. For most flags it indicates an unset shell variable.
    let mayBeEmpty: Bool
    /// The maximum number of occurrences; see ``Invocation/values(of:)``.
    let maximumCount: Int
    /// The values that a shell offers for a text; nil without any.
    let completes: Candidates?

    init(
        _ name: String, _ value: Value = .none, letter: Character? = nil, default defaultValue: String? = nil,
        environment: String? = nil, mayBeEmpty: Bool = false, maximumCount: Int = 1,
        completes: Candidates? = nil, help: String
    ) {
        self.name = name
        self.letter = letter
        self.value = value
        self.help = help
        self.defaultValue = defaultValue
        self.environment = environment
        self.mayBeEmpty = mayBeEmpty
        self.maximumCount = maximumCount
        self.completes = completes
    }

    /// The flag in help, such as `--port PORT` or `-o, --output WORD`.
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

    /// Normalizes a valid value: a duration to a number of the flag's units, a size to bytes, else the text.
    func plain(_ text: String) -> String {
        switch value {
        case .duration(let unit, _): Quantity.duration(text, in: unit).map { String($0) } ?? text
        case .size: Quantity.size(text).map { String($0) } ?? text
        default: text
        }
    }

    /// The opposite of ``plain(_:)``: a duration or size with its unit, else the text. 0 has no unit.
    func withUnit(_ text: String) -> String {
        guard let number = Int64(text), number != 0 else { return text }
        return switch value {
        case .duration(let unit, _): Quantity.text(seconds: number * Int64(unit.inSeconds))
        case .size: Quantity.text(bytes: number)
        default: text
        }
    }

    /// Why `text` is not a valid value of this flag; nil if it is valid.
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
