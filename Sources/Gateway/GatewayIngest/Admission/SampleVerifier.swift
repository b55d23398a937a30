package import CountersignCore
internal import CountersignJOSE
package import Foundation
package import GatewayModel
package import GatewayObservability

package struct SampleVerifier: Sendable {
    let recorder: AnalyticsRecorder
    let apps: AppRegistry
    let now: @Sendable () -> Date
    /// Sends a sample whose token is not in this gateway's memory to another gateway for verification.
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

    package struct Verdict: Sendable {
        package var checks: [FailureSample.Check]
        /// The code of the first fault; nil if no fault was found.
        package var code: AuthErrorCode?
        /// A limitation of the result; nil if everything could be verified.
        package var note: String?

        package init(checks: [FailureSample.Check], code: AuthErrorCode?, note: String?) {
            self.checks = checks
            self.code = code
            self.note = note
        }
    }

    package func hasToken(of sampleID: String) -> Bool { recorder.failedToken(of: sampleID) != nil }

    /// Verifies the sample's token again. Returns nil if no gateway has the token in memory any more (signatures are
    /// never on disk), no gateway answers in time, or the app was deleted. Another gateway may take seconds.
    package func again(_ sample: FailureSample) -> Verdict? {
        guard let failed = recorder.failedToken(of: sample.id) else { return elsewhere(sample) }
        guard let app = apps.app(id: sample.appID) else { return nil }
        let instant = now().timeIntervalSince1970
        var note: String?
        if sample.userID != nil, sample.code == .payloadUserIDMismatch {
            note = "the request's other user ids are not stored, so they could not be compared again"
        }
        let report = app.report(
            on: AdmissionRequest(
                credential: Credential(sample.userID == nil ? .accessToken : .userToken, failed.token),
                userIDs: sample.userID.map { [$0] } ?? [], deviceTime: failed.deviceTime),
            at: instant)
        return Verdict(checks: FailureSample.checks(report), code: report.code, note: note)
    }
}
