package import CountersignJOSE

package final class FailedToken: Sendable {
    package let token: String?
    package let report: VerificationReport
    package let deviceTime: Double?

    package init(token: String?, report: VerificationReport, deviceTime: Double?) {
        self.token = token
        self.report = report
        self.deviceTime = deviceTime
    }
}
