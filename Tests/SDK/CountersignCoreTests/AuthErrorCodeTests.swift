import Testing

@testable import CountersignCore

struct AuthErrorCodeTests {
    // The codes and reasons of Braze's SDK Authentication.
    @Test(arguments: [
        (10, "EXPIRATION_REQUIRED"), (20, "DECODING_ERROR"), (21, "SUBJECT_MISMATCH"), (22, "EXPIRED"),
        (23, "INVALID_PAYLOAD"), (24, "INCORRECT_ALGORITHM"), (25, "PUBLIC_KEY_ERROR"), (26, "MISSING_TOKEN"),
        (27, "NO_MATCHING_PUBLIC_KEYS"), (28, "PAYLOAD_USER_ID_MISMATCH"),
    ])
    func codesHaveTheDocumentedReasons(number: Int, reason: String) {
        #expect(AuthErrorCode(rawValue: number).reason == reason)
    }

    @Test func everyCodeHasARemedy() {
        let numbers = AuthErrorCode.all.map(\.rawValue)
        #expect(numbers == Set(numbers).sorted())
        #expect(Set(AuthErrorCode.all.map(\.reason)).count == numbers.count)
        for code in AuthErrorCode.all {
            #expect(!code.summary.isEmpty && !code.fix.isEmpty && !code.likelyCauses.isEmpty)
        }
    }

    /// A new token does not help if a request names several users, or if no key is usable.
    @Test func onlyTwoCodesCannotBeFixedByAnotherToken() {
        let hopeless = AuthErrorCode.all.filter { !$0.isMendedByAnotherToken }
        #expect(hopeless == [.publicKeyError, .payloadUserIDMismatch])
        #expect(AuthErrorCode(rawValue: 99).isMendedByAnotherToken)
    }

    @Test func aCodeOfANewerVersionIsKept() {
        let code = AuthErrorCode(rawValue: 99)
        #expect(code.reason == "UNKNOWN")
        #expect(code.rawValue == 99)
    }
}
