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

    package init(recorder: AnalyticsRecorder, apps: AppRegistry, now: @escaping @Sendable () -> Date) {
        self.recorder = recorder
        self.apps = apps
        self.now = now
    }

    /// What today's verdict is.
    package struct Verdict: Sendable {
        package var checks: [FailureSample.Check]
        /// Nil when the token would be accepted now.
        package var code: AuthErrorCode?
        /// What could not be judged; nil when all could.
        package var note: String?
    }

    /// Returns the verdict; nil when the token is no longer in memory or its app is gone: signatures are never kept on
    /// disk, so a sample from before the gateway's last start cannot be judged again.
    package func again(_ sample: FailureSample) -> Verdict? {
        guard let failed = recorder.failedToken(of: sample.id), let app = apps.app(id: sample.appID) else {
            return nil
        }
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
