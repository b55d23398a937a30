package import CountersignCore
internal import CountersignJOSE
package import Foundation
package import GatewayModel
package import GatewayObservability

/// Judges a sample again, by today's keys, policy and time.
package struct SampleJudge: Sendable {
    let recorder: AnalyticsRecorder
    let apps: AppRegistry
    let now: @Sendable () -> Date
    /// How another gateway judges a sample whose token this one does not have.
    let elsewhere: @Sendable (FailureSample) -> Verdict?

    package init(
        recorder: AnalyticsRecorder, apps: AppRegistry, now: @escaping @Sendable () -> Date,
        elsewhere: @escaping @Sendable (FailureSample) -> Verdict? = { _ in nil }
    ) {
        self.recorder = recorder
        self.apps = apps
        self.now = now
        self.elsewhere = elsewhere
    }

    /// What today's verdict is.
    package struct Verdict: Sendable {
        package var checks: [FailureSample.Check]
        /// Nil when the token would be accepted now.
        package var code: AuthErrorCode?
        /// What could not be judged; nil when all could.
        package var note: String?

        package init(checks: [FailureSample.Check], code: AuthErrorCode?, note: String?) {
            self.checks = checks
            self.code = code
            self.note = note
        }
    }

    /// True while the sample's token is in this gateway's memory.
    package func hasToken(of sampleID: String) -> Bool { recorder.failedToken(of: sampleID) != nil }

    /// Returns the verdict; nil when the token is no longer in any gateway's memory or its app is gone: signatures are never
    /// kept on disk, so a sample from before the gateway's last start cannot be judged again. Asking another takes seconds.
    package func again(_ sample: FailureSample) -> Verdict? {
        guard let failed = recorder.failedToken(of: sample.id) else { return elsewhere(sample) }
        guard let app = apps.app(id: sample.appID) else { return nil }
        let instant = now().timeIntervalSince1970
        let report: VerificationReport
        var note: String?
        if let userID = sample.userID {
            report = app.verifier.verify(
                failed.token, userID: nil, payloadUserIDs: [userID], at: instant,
                deviceTime: failed.deviceTime)
            if sample.code == .payloadUserIDMismatch {
                note = "the request's other user ids are not kept, so that check is not made again"
            }
        } else {
            report = app.verifier.inspect(failed.token, at: instant)
        }
        return Verdict(checks: FailureSample.checks(report), code: report.code, note: note)
    }
}
