internal import CountersignCore

extension RequestContext {
    /// The result to store with the events; nil when the request was rejected or did not reach admission.
    package func proof(dialect: String, requestID: String) -> EventProof? {
        let result: EventProof.Verdict
        switch verdict {
        case .accepted: result = isFromServer ? .server : .verified
        case .acceptedWithWarning: result = .warned
        case .notJudged: result = .notJudged
        case .anonymous: result = .anonymous
        case .rejected, nil: return nil
        }
        return EventProof(
            verdict: result, code: authCode?.rawValue, keyID: verdict == .accepted ? keyID : nil,
            enforcement: enforcement?.rawValue, dialect: dialect, requestID: requestID,
            tokenID: tokenID, claims: claims)
    }
}
