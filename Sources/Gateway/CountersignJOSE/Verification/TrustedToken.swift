/// A token with a verified signature. Its claims are checked for each request.
struct TrustedToken: Sendable {
    let claims: Claims
    let entry: Int
    let typeIsMissing: Bool
}
