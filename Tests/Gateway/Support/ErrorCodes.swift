package import CountersignGatewayTesting
package import GatewayModel

/// The code of the `GatewayError` that `body` throws; nil without one.
package func code(_ body: () throws -> Void) -> GatewayError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? GatewayError)?.code
    }
}

extension TestAnswer {
    /// The code of a rejected token in `auth_error`, a member of every dialect's 401 responses.
    package var authErrorCode: Int? { (json["auth_error"] as? [String: Any])?["error_code"] as? Int }
}
