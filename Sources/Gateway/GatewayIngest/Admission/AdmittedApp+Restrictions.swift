internal import GatewayHTTP
internal import GatewayModel

extension AdmittedApp {
    /// Returns the app with these restrictions, or `self` if they are unchanged. Rate limits continue from `before`.
    func restricted(
        by measures: [UserRestriction], before: UserRestrictions?, _ sharers: @escaping @Sendable () -> Int
    ) -> AdmittedApp {
        if (restrictions?.all ?? []) == measures { return self }
        return AdmittedApp(
            self,
            restrictions: measures.isEmpty
                ? nil : UserRestrictions(measures, before: before, sharers: sharers))
    }
}

extension UserRestrictions.Rejection {
    /// 403 for a blocked user or device; 429 for a rate-limited user or device. Both have `Retry-After`.
    func response(_ request: HTTPRequest) -> HTTPResponse {
        switch self {
        case .blocked(let subject, let seconds):
            request.failure(
                403, "\(subject.rawValue)_blocked",
                "an operator of this app has blocked this \(subject.rawValue); nothing was stored"
            ).with("Retry-After", String(seconds))
        case .limited(let subject, let seconds):
            request.failure(
                429, "\(subject.rawValue)_rate_limited",
                "an operator of this app limits the requests of this \(subject.rawValue); nothing was stored, send "
                    + "it again after Retry-After"
            ).with("Retry-After", String(seconds))
        }
    }
}
