extension CustomerTokenCoordinator {
    func credential(
        for endpoint: BloomreachEndpoint, of ids: [String: String], log: CountersignLog?
    ) async throws(CountersignError) -> Credential {
        if TokenProviderCall.isInside {
            throw CountersignError(
                .calledFromProvider, endpoint, "the provider must not wait for a call that needs its token")
        }
        do {
            return Credential(.bearer, token: try Self.token(from: await token(for: ids), for: endpoint))
        } catch {
            log?(.warning, "customer token is missing, the request was not sent", ["reason": "\(error)"])
            throw error
        }
    }

    private static func token(
        from outcome: Outcome, for endpoint: BloomreachEndpoint
    ) throws(CountersignError) -> SignedToken {
        func error(_ code: CountersignError.Code, _ detail: String) -> CountersignError {
            CountersignError(code, endpoint, detail + "; nothing was sent")
        }
        switch outcome {
        case .returned(let text):
            guard let text, !text.isEmpty else {
                throw error(.noCustomerToken, "the provider has no customer token")
            }
            // A provider written for the Android SDK may return the value of the header field, with `Bearer`.
            let bare = text.hasPrefix("Bearer ") ? String(text.dropFirst("Bearer ".count)) : text
            guard let token = SignedToken.accessToken(bare) else {
                throw error(
                    .malformedCustomerToken,
                    "the provider returned a value that is invalid in a header field")
            }
            return token
        case .failed: throw error(.providerFailed, "the provider threw an error")
        case .timedOut: throw error(.providerTimedOut, "the provider took too long")
        case .tooMany: throw error(.providerBusy, "too many requests wait for the provider")
        case .noProvider: throw error(.noProvider, "there is no authorization provider")
        case .cancelled: throw error(.cancelled, "the task was cancelled")
        }
    }
}
