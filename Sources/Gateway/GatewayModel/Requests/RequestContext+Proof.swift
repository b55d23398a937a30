internal import CountersignCore

extension RequestContext {
    /// The verification result to store with the request's events; nil when the request was rejected or not
    /// fully verified.
    package func proof(dialect: String, requestID: String) -> EventProof? {
        let judged: EventProof.Verdict
        switch verdict {
        case .accepted: judged = isFromServer ? .server : .verified
        case .acceptedWithWarning: judged = .warned
        case .notJudged: judged = .notJudged
        case .anonymous: judged = .anonymous
        case .rejected, nil: return nil
        }
        return EventProof(
            verdict: judged, code: authCode?.rawValue, keyID: verdict == .accepted ? keyID : nil,
            enforcement: enforcement?.rawValue, dialect: dialect, requestID: requestID,
            tokenID: tokenID, claims: claims)
    }
}
