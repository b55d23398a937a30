internal import CCommonPasswords
internal import CountersignCrypto
internal import GatewayModel

/// Rejects short, common and predictable new passwords (NIST SP 800-63B, revision 4, section 3.1.1.2).
enum PasswordPolicy {
    /// The reason to reject a password, without the subject of the sentence; nil if the password is accepted.
    static func fault(_ password: String, of user: String) -> String? {
        guard PasswordHash.range.contains(password.utf8.count) else {
            return "must have 12 to 1024 bytes"
        }
        let text = Array(password.lowercased().unicodeScalars)
        if isCommon(text) {
            return "is one of the most common passwords, or one of them with digits or symbols around it"
        }
        if isRun(text) { return "is a simple sequence of letters or digits" }
        if let unit = repeated(text), unit.count < PasswordHash.range.lowerBound {
            return "is a shorter text repeated"
        }
        if isContext(text, user) { return "is little more than the name of the user or of the product" }
        return nil
    }

    /// Whether the password is common, also with digits for letters and with digits and symbols around it.
    private static func isCommon(_ text: [Unicode.Scalar]) -> Bool {
        let isLetter: (Unicode.Scalar) -> Bool = { $0.properties.isAlphabetic }
        var candidates = [text]
        if let first = text.firstIndex(where: isLetter), let last = text.lastIndex(where: isLetter),
            text.count - (last - first + 1) <= 8
        {
            candidates.append(Array(text[first...last]))
            // A digit that replaces a letter may be at either end: `3lephant99`, `99domin0`.
            candidates.append(Array(text[first...]))
            candidates.append(Array(text[...last]))
        }
        return candidates.contains { candidate in
            let unit = repeated(candidate) ?? candidate
            return [candidate, unit].contains { word in
                contains(word) || contains(plain(word, one: "i")) || contains(plain(word, one: "l"))
            }
        }
    }

    private static func plain(_ text: [Unicode.Scalar], one: Unicode.Scalar) -> [Unicode.Scalar] {
        text.map { scalar in
            switch scalar {
            case "0": "o"
            case "1", "!": one
            case "3": "e"
            case "4", "@": "a"
            case "5", "$": "s"
            case "7": "t"
            case "8": "b"
            case "9": "g"
            default: scalar
            }
        }
    }

    /// The repeated unit of a text; nil without repetition. The last repetition may be incomplete.
    private static func repeated(_ text: [Unicode.Scalar]) -> [Unicode.Scalar]? {
        guard text.count > 1 else { return nil }
        return (1...text.count / 2).first { length in
            (length..<text.count).allSatisfy { text[$0] == text[$0 - length] }
        }.map { Array(text[..<$0]) }
    }

    /// Whether each character is equal or adjacent to the previous one, in the alphabet or among the digits.
    private static func isRun(_ text: [Unicode.Scalar]) -> Bool {
        zip(text, text.dropFirst()).allSatisfy { before, after in
            let distance = Int(after.value) - Int(before.value)
            return abs(distance) <= 1 || (before == "9" && after == "0") || (before == "0" && after == "9")
        }
    }

    /// Whether the text consists of the user's or the product's name and fewer than six other letters and digits.
    private static func isContext(_ text: [Unicode.Scalar], _ user: String) -> Bool {
        var rest = text[...]
        var left = 0
        var isNamed = false
        let words = [user.lowercased(), "countersign"].map { Array($0.unicodeScalars) }.filter {
            $0.count >= 3
        }
        while let first = rest.first {
            if let word = words.first(where: { rest.starts(with: $0) }) {
                isNamed = true
                rest = rest.dropFirst(word.count)
            } else {
                if first.properties.isAlphabetic || first.properties.numericType != nil { left += 1 }
                rest = rest.dropFirst()
            }
        }
        return isNamed && left < 6
    }

    private static func contains(_ word: [Unicode.Scalar]) -> Bool {
        countersign_is_common_password(SHA256.digest(String(String.UnicodeScalarView(word))))
    }
}
