import CountersignCore
import Testing

@testable import CountersignJOSE

struct VerificationCheckTests {
    @Test func everyCodeHasOneCheck() {
        #expect(
            VerificationCheck.all.map(\.code.rawValue).sorted() == AuthErrorCode.all.map(\.rawValue).sorted())
    }
}
