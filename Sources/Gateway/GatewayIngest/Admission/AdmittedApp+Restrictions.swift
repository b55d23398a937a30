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
    /// 403 for a blocked user or device; 429 with `Retry-After` for a rate-limited user or device.
    func response(_ request: HTTPRequest) -> HTTPResponse {
        switch self {
        case .blocked:
            request.failure(
                403, "user_blocked",
                "an operator of this app has blocked this user or device; nothing was stored")
        case .limited(let seconds):
            request.failure(
                429, "user_rate_limited",
                "an operator of this app limits the requests of this user or device; nothing was stored, send it "
                    + "again after Retry-After"
            ).with("Retry-After", String(seconds))
        }
    }
}
