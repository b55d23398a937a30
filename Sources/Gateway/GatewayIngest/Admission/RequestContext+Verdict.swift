internal import CountersignJOSE
internal import GatewayModel

extension RequestContext {
    package mutating func note(_ verdict: Verdict, app: AdmittedApp) {
        appID = app.id
        enforcement = app.enforcement
        switch verdict {
        case .anonymous: self.verdict = .anonymous
        case .notJudged: self.verdict = .notJudged
        case .accepted(let report, let holder):
            self.verdict = .accepted
            isFromServer = holder == .server
            keyID = report.matchedKeyID
            tokenID = report.claims?.tokenID
            claims = report.claims?.kept
        case .acceptedWithWarning(let report):
            self.verdict = .acceptedWithWarning
            enforcement = .optional
            authCode = report.code
            keyID = report.matchedKeyID
        case .rejected(let report):
            self.verdict = .rejected
            authCode = report.code
            keyID = report.matchedKeyID
        }
    }
}
