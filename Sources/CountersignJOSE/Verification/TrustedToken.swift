/// A token whose signature is good. Whether it is valid now and for this user is judged at each request.
struct TrustedToken: Sendable {
    let claims: Claims
    let entry: Int
    let typeIsMissing: Bool
}
