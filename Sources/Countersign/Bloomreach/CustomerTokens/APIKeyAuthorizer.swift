/// Public access: `Token` and the project's API key.
struct APIKeyAuthorizer: RequestAuthorizer {
    let apiKey: SignedToken?

    var value: String? { apiKey.map { "Token \($0.rawValue)" } }

    func authorization(for endpoint: BloomreachEndpoint) throws(BloomreachError) -> String {
        guard let value else {
            throw BloomreachError(.authorizationRefused, endpoint, "there is no API key")
        }
        return value
    }
}
