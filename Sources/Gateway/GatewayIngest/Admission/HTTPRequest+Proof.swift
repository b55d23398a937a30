internal import CountersignCore
package import GatewayHTTP
package import GatewayModel

// An extension of the request, because a call of the context's own function would copy the context.
extension HTTPRequest {
    /// Nil if the request was rejected or has no verdict.
    package func proof(dialect: String) -> EventProof? {
        let result: EventProof.Verdict
        switch context.verdict {
        case .accepted: result = context.isFromServer ? .server : .verified
        case .acceptedWithWarning: result = .warned
        case .notJudged: result = .notJudged
        case .anonymous: result = .anonymous
        case .rejected, nil: return nil
        }
        return EventProof(
            verdict: result, code: context.authCode?.rawValue,
            keyID: context.verdict == .accepted ? context.keyID : nil,
            enforcement: context.enforcement?.rawValue, dialect: dialect, requestID: id,
            tokenID: context.tokenID, claims: context.claims)
    }
}
