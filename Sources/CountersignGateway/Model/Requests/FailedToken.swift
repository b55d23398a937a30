internal import CountersignJOSE

/// A token that was not good, on its way to the samples.
package final class FailedToken: Sendable {
    let token: String?
    let report: VerificationReport
    let deviceTime: Double?

    init(token: String?, report: VerificationReport, deviceTime: Double?) {
        self.token = token
        self.report = report
        self.deviceTime = deviceTime
    }
}
