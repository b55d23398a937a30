import Testing

@testable import Countersign

/// The transitions of a sign-out, without files.
struct SignOutTests {
    @Test func aTokenFromTheAppSignsTheUserInAgain() {
        let signOut = SignOut.begin("ada", in: "one", from: nil)
        #expect(signOut.tokenStored(from: .appDuringSignOut, in: "one")?.state == .signedInAgain)
        #expect(signOut.tokenStored(from: .app, in: "two")?.state == .signedInAgain)
        #expect(
            signOut.tokenStored(from: .app, in: "one") == signOut, "the token was set before the sign-out")
        #expect(signOut.tokenStored(from: .provider, in: "two") == signOut)
        let signedOut = SignOut(user: "ada", state: .signedOut)
        #expect(signedOut.tokenStored(from: .provider, in: "one") == nil)
        #expect(SignOut.begin("ada", in: "two", from: signedOut) == signedOut)
    }
}
