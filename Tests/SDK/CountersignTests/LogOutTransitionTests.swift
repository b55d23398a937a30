import Testing

@testable import Countersign

/// The transitions of a log-out, without files.
struct LogOutTransitionTests {
    @Test func aTokenFromTheAppSignsTheUserInAgain() {
        let logOut = LogOut.begin("ada", in: "one", from: nil)
        #expect(logOut.tokenStored(from: .appDuringLogOut, in: "one")?.state == .signedInAgain)
        #expect(logOut.tokenStored(from: .app, in: "two")?.state == .signedInAgain)
        #expect(
            logOut.tokenStored(from: .app, in: "one") == logOut, "the token was set before the log-out")
        #expect(logOut.tokenStored(from: .provider, in: "two") == logOut)
        let loggedOut = LogOut(user: "ada", state: .loggedOut)
        #expect(loggedOut.tokenStored(from: .provider, in: "one") == nil)
        #expect(LogOut.begin("ada", in: "two", from: loggedOut) == loggedOut)
    }
}
