internal import CountersignCore

extension Flag {
    static let code = Flag(
        "code", .text("CODE"), completes: .codes, help: "only this code: 22, or EXPIRED")
}

extension Invocation {
    /// The number of the code in ``Flag/code``, which is a number or a name. Throws `usage` for an unknown code.
    func code() throws(CommandError) -> String? {
        guard let word = try value(of: .code) else { return nil }
        return String(try AuthErrorCode(word: word).rawValue)
    }
}

extension AuthErrorCode {
    /// Parses a code given by number or name. Throws `usage`, with the most similar valid name.
    init(word: String) throws(CommandError) {
        let named = AuthErrorCode.all.first { code in
            String(code.rawValue) == word || code.reason == word.uppercased().replacing("-", with: "_")
        }
        guard let named else {
            let known = AuthErrorCode.all
            throw CommandError(
                .usage, "there is no code '\(word)'",
                hint: Suggestion.nearest(to: word.uppercased(), among: known.map(\.reason)).map {
                    "did you mean \($0)?"
                } ?? "one of \(known.map { "\($0.rawValue) \($0.reason)" }.joined(separator: ", "))")
        }
        self = named
    }
}
