import CountersignCore
import Testing

@testable import CountersignJOSE

struct VerificationCheckTests {
    @Test func everyCodeHasOneCheck() {
        #expect(
            VerificationCheck.all.map(\.code.rawValue).sorted() == AuthErrorCode.all.map(\.rawValue).sorted())
    }

    /// Revocations are looked up only for a token that is valid otherwise.
    @Test func aRevocationThatWasNotLookedUpIsNotReportedAsPassed() {
        func outcome(_ fault: AuthErrorCode?) -> VerificationCheck.Outcome? {
            var report = VerificationReport()
            report.checkedClaims = true
            if let fault { report.add(fault, "a fault") }
            return VerificationCheck.list(of: report, withUser: true).first { $0.code == .userRevoked }?
                .outcome
        }
        #expect(outcome(nil) == .passed && outcome(.userRevoked) == .failed)
        #expect(outcome(.expired) == .notJudged)
    }
}
