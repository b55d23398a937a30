package import CountersignDelivery
import Foundation

extension SignedToken {
    /// An unsigned token with this `exp`.
    package static func fake(subject: String, expiresAt: Int, serial: Int = 0) -> String {
        func part(_ json: String) -> String {
            Data(json.utf8).base64EncodedString().replacingOccurrences(of: "+", with: "-")
                .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
        }
        return part(#"{"alg":"RS256","typ":"JWT"}"#) + "."
            + part(#"{"sub":"\#(subject)","exp":\#(expiresAt),"jti":"\#(serial)"}"#) + ".c2ln"
    }
}
