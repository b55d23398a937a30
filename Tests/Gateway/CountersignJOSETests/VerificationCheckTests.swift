import CountersignCore
import Testing

@testable import CountersignJOSE

struct VerificationCheckTests {
    @Test func everyCodeHasOneCheck() {
        #expect(
            VerificationCheck.all.map(\.code.rawValue).sorted() == AuthErrorCode.all.map(\.rawValue).sorted())
    }

    /// Revocations are looked up only for a token with accepted claims.
    @Test func aRevocationThatWasNotLookedUpIsNotReportedAsPassed() throws {
        func outcome(_ report: VerificationReport) -> VerificationCheck.Outcome? {
            VerificationCheck.list(of: report, withUser: true).first { $0.code == .userRevoked }?.outcome
        }
        var report = try Case().report()
        #expect(outcome(report) == .passed)
        report.add(.userRevoked, "a fault")
        #expect(outcome(report) == .failed)
        let expired = try Case(claims: #"{"sub":"user-1","exp":1}"#).report()
        #expect(expired.code == .expired && outcome(expired) == .notJudged)
    }
}
