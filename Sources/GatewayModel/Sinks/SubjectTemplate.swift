internal import CountersignCore

/// The subjects that a sink publishes under: tokens with dots between them, each a word or one of `{app}`, `{type}` and
/// `{user}`.
///
/// What comes from an event is one token whatever it holds, for a dot, a wildcard or a space in it would be another subject:
/// every byte but `A-Z a-z 0-9 _ -` is written as `%` and two hexadecimal digits.
package struct SubjectTemplate: Sendable, Equatable {
    private enum Token: Sendable, Equatable {
        /// Also what stands for the app.
        case word(String)
        case type
        case user
    }

    package static let standard = "countersign.{app}.{type}.{user}"
    /// The most bytes of a template.
    package static let longest = 200
    /// The bytes that a subject rarely exceeds.
    private static let usual = 80
    /// What stands for the user of an event that has none.
    package static let nobody = "none"

    private let tokens: [Token]

    /// Nil for what is no template, or would be a subject of the server's own.
    package init?(_ text: String, appID: String) {
        guard 1...Self.longest ~= text.utf8.count else { return nil }
        var tokens: [Token] = []
        for token in text.split(separator: ".", omittingEmptySubsequences: false) {
            switch String(token) {
            case "{app}":
                // The first one must not come from outside, nor begin with `$` or `_INBOX`.
                guard !tokens.isEmpty else { return nil }
                tokens.append(.word(Self.escaped(appID)))
            case "{type}": tokens.append(.type)
            case "{user}": tokens.append(.user)
            default:
                guard !token.isEmpty, token.utf8.allSatisfy(Self.isPlain) else { return nil }
                tokens.append(.word(String(token)))
            }
        }
        guard case .word(let first)? = tokens.first, !first.hasPrefix("_") else { return nil }
        self.tokens = tokens
    }

    /// The subject that covers all of a sink's events and nothing of another app's.
    package var filter: String {
        tokens.map { token in
            switch token {
            case .word(let word): word
            case .type, .user: "*"
            }
        }.joined(separator: ".")
    }

    /// The subject of an event. `hash` makes 16 hexadecimal digits of a user's id.
    package func subject(type: String, user: String?, hash: (String) -> String) -> String {
        var subject = ""
        subject.reserveCapacity(Self.usual)
        for (index, token) in tokens.enumerated() {
            if index > 0 { subject.append(".") }
            switch token {
            case .word(let word): subject.append(word)
            case .type: subject.append(Self.escaped(type))
            case .user: subject.append(user.map(hash) ?? Self.nobody)
            }
        }
        return subject
    }

    private static func isPlain(_ byte: UInt8) -> Bool { byte.isASCIIAlphanumeric(or: "_-") }

    private static func escaped(_ text: String) -> String {
        text.utf8.allSatisfy(isPlain) && !text.isEmpty ? text : escaped(text, where: isPlain)
    }

    /// Text with every byte that must not stand as it is as `%` and two hexadecimal digits. The empty text is `%`.
    package static func escaped(_ text: String, where isPlain: (UInt8) -> Bool) -> String {
        guard !text.isEmpty else { return "%" }
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if isPlain(byte) {
                bytes.append(byte)
            } else {
                bytes.append(UInt8(ascii: "%"))
                bytes.append(contentsOf: [byte].hexadecimal.utf8)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
