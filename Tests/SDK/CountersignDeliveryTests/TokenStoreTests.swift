import CountersignTesting
import Foundation
import SDKTestSupport
import Testing

@testable import CountersignDelivery

struct TokenStoreTests {
    private let folder = TemporaryFolder()
    private var directory: URL { folder.url }

    @Test func fileStoreKeepsOneTokenForEachUser() throws {
        let store = FileTokenStore(directory: directory)
        #expect(try store.token(for: "ada") == nil)
        try store.store("a", for: "ada")
        try store.store("c", for: "caf\u{E9}")
        try store.store("d", for: "cafe\u{301}")
        try store.store("b", for: "ada")
        let again = FileTokenStore(directory: directory)
        #expect(try again.token(for: "ada") == "b")
        #expect(try again.token(for: "caf\u{E9}") == "c")
        #expect(try again.token(for: "cafe\u{301}") == "d")
        try store.removeToken(for: "ada")
        #expect(try again.token(for: "ada") == nil)
        try store.removeAll()
        #expect(try again.token(for: "caf\u{E9}") == nil)
    }

    @Test func tokensDeletedByOneProcessAreNotRestoredByAnother() async throws {
        let directory = directory
        let writing = ProviderThread.run {
            let other = FileTokenStore(directory: directory)
            for serial in 0..<100 { try? other.store("b\(serial)", for: "bob") }
        }
        let store = FileTokenStore(directory: directory)
        for serial in 0..<100 {
            try store.store("a\(serial)", for: "ada")
            #expect(try store.token(for: "ada") == "a\(serial)")
            try store.removeToken(for: "ada")
            #expect(try store.token(for: "ada") == nil)
        }
        await writing.value
        #expect(try store.token(for: "ada") == nil)
        #expect(try store.token(for: "bob") == "b99")
    }

    /// Before the device's first unlock a file is unreadable. Its tokens must not be overwritten.
    @Test func anUnreadableTokenFileIsNotTreatedAsEmpty() throws {
        let file = directory.appendingPathComponent("tokens.json")
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: true)
        let store = FileTokenStore(directory: directory)
        #expect(throws: (any Error).self) { try store.token(for: "ada") }
        #expect(throws: (any Error).self) { try store.removeToken(for: "ada") }
    }

    @Test func removingATokenErasesADamagedFile() throws {
        let file = directory.appendingPathComponent("tokens.json")
        try FileTokenStore(directory: directory).store("secret", for: "ada")
        try Data(contentsOf: file).dropLast().write(to: file)
        try FileTokenStore(directory: directory).removeToken(for: "ada")
        #expect(try String(contentsOf: file, encoding: .utf8) == "[]")
    }

    @Test func onlyTheOwnerCanReadTheFile() throws {
        try FileTokenStore(directory: directory).store("a", for: "ada")
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode(directory.path) == 0o700)
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        #expect(names.sorted() == [".tokens.lock", "tokens.json"], "no temporary file is left")
        for name in names { #expect(try mode(directory.appendingPathComponent(name).path) == 0o600) }
    }

    @Test(arguments: ["", "a b", "a\r\nb", "a\u{0}b", "tök.en.x", String(repeating: "a", count: 16_385)])
    func textThatIsInvalidInAHeaderOrTooLongIsNotAToken(text: String) {
        #expect(SignedToken(text) == nil)
    }

    @Test func aTokenMayHave16KiB() { #expect(SignedToken(String(repeating: "a", count: 16_384)) != nil) }

    @Test func aTokensDescriptionsNeverContainItsText() throws {
        let token = try #require(SignedToken("header.payload.signature"))
        var dumped = ""
        dump(token, to: &dumped)
        for text in [
            "\(token)", String(reflecting: token), dumped, "\(["t": token])", "\(Optional(token) as Any)",
        ] {
            #expect(text.contains("payload") == false, "\(text)")
        }
    }

    @Test func expiryIsReadFromTheClaims() {
        #expect(
            SignedToken(SignedToken.fake(subject: "ada", expiresAt: 1_750_000_123))?.expiresAt
                == 1_750_000_123)
        #expect(SignedToken("a.b.c")?.expiresAt == nil)
        #expect(SignedToken("nothing")?.expiresAt == nil)
    }
}
