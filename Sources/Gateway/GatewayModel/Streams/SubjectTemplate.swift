internal import CountersignCore

/// A template for the subjects that a stream publishes to: tokens separated by dots. A token is a literal,
/// `{app}`, `{type}` or `{user}`.
///
/// A user's id becomes a hash. The app's id and the type are escaped into one token each, because a dot, wildcard or
/// space would change the subject. Every byte except `A-Z a-z 0-9 _ -` becomes `%` and two hexadecimal digits.
package struct SubjectTemplate: Sendable, Equatable {
    private enum Token: Sendable, Equatable {
        case word(String)
        case type
        case user
    }

    package static let standard = "countersign.{app}.{type}.{user}"
    /// The maximum length of a template, in bytes.
    package static let longest = 200
    /// The reserved capacity of a subject, in bytes.
    private static let usual = 80
    package static let nobody = "none"

    private let tokens: [Token]

    /// Nil when the template is invalid or could produce a subject reserved for the server.
    package init?(_ text: String, appID: String) {
        guard 1...Self.longest ~= text.utf8.count else { return nil }
        var tokens: [Token] = []
        for token in text.split(separator: ".", omittingEmptySubsequences: false) {
            switch String(token) {
            case "{app}":
                // The first token must be a literal, so that no subject can begin with `$` or `_INBOX`.
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

    /// The subject filter that matches all events of the app. A template with `{app}` matches no other app.
    package var filter: String {
        tokens.map { token in
            switch token {
            case .word(let word): word
            case .type, .user: "*"
            }
        }.joined(separator: ".")
    }

    /// The subject of an event. `hash` returns 16 hexadecimal digits for a user's id.
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

    /// Escapes every byte that is not plain as `%` and two hexadecimal digits. The empty text becomes `%`.
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
