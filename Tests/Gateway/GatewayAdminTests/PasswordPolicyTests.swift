import Testing

@testable import GatewayAdmin

/// Rejected and accepted passwords.
struct PasswordPolicyTests {
    @Test(arguments: [
        "elevenbytes", "123qweasdzxc", "1qaz2wsx3edc", "LeaveMeAlone", "qwerty123456", "password1234",
        "Password2026!", "P@ssw0rd!!!!", "p4ssw0rd2026", "letmein!!!!!", "!!dragon!!99", "iloveyou2026",
        "passwordpassword", "dragondragon", "aaaaaaaaaaaa", "abcabcabcabc", "abcdefabcdefab", "abcdefghijkl",
        "123456789012", "987654321098", "countersign1", "Countersign-2026", "countersigncountersign",
        "ada-lovelace-1", "countersign!?~(&^", "ada-lovelace ada", "countersign ada-lovelace", "éééééééééééé",
    ])
    func guessablePasswordsAreRejected(password: String) {
        #expect(PasswordPolicy.fault(password, of: "ada-lovelace") != nil)
    }

    @Test(arguments: [
        "correct horse battery", "another password", "password of my own choosing", "tr0ub4dor&3 stays",
        "xK9#mQ2$vL7!", "7391 5520 8846", "ich mag lila Kühe", "dragon-x48Kq72ms", "correct horse correct",
        "一二三四五六七八九十", "adalovelace wrote notes", "?~(_=;|^<&[*", "🦊🌲🚲🎺🧊🍋🪁🐙🛶🎲🧵🪴",
    ])
    func otherPasswordsAreAccepted(password: String) {
        #expect(PasswordPolicy.fault(password, of: "ada-lovelace") == nil)
    }

    @Test func aShortNameMayOccurInAPasswordAndATooLongPasswordIsRejected() {
        #expect(PasswordPolicy.fault("a tent of canvas", of: "a") == nil)
        #expect(PasswordPolicy.fault(String(repeating: "x9", count: 513), of: "ada") != nil)
    }
}
