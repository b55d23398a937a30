internal import GatewayHTTP
internal import GatewayModel

extension AdmittedApp {
    /// Returns the app with these restrictions, or `self` if they are unchanged. `before` has the limits in use.
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
    /// 403 for a blocked user or device; 429 with `Retry-After` for a rate-limited user or device.
    func response(_ request: HTTPRequest) -> HTTPResponse {
        switch self {
        case .blocked:
            .failure(
                403, code: "user_blocked",
                reason: "an operator of this app has blocked this user or device; nothing was stored",
                requestID: request.id)
        case .limited(let seconds):
            HTTPResponse.failure(
                429, code: "user_rate_limited",
                reason: "an operator of this app limits the requests of this user or device; nothing was "
                    + "stored, send it again after Retry-After",
                requestID: request.id
            ).with("Retry-After", String(seconds))
        }
    }
}
