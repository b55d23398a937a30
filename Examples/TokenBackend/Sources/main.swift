// Prints a token for a user: TokenBackend PRIVATE_KEY USER
// or a customer token for Bloomreach's App Inbox: TokenBackend --customer SECRET_FILE KEY_ID REGISTERED
import CountersignJOSE
import Foundation

/// A token that your backend signs for a signed-in user.
func signedToken(for userID: String, key: SigningKey, lifetime: Int64 = 3600) throws -> String {
    let now = Int64(Date().timeIntervalSince1970)
    return try key.sign(
        claims: ["sub": .string(userID), "iat": .integer(now), "exp": .integer(now + lifetime)])
}

/// A token that opens the inbox of one customer.
func customerToken(for registered: String, key: CustomerTokenKey, lifetime: Int64 = 3600) -> String {
    let now = Int64(Date().timeIntervalSince1970)
    return key.sign(customerIDs: ["registered": registered], claims: ["exp": .integer(now + lifetime)])
}

func text(ofFile path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

let arguments = CommandLine.arguments
switch (arguments.count, arguments.dropFirst().first) {
case (5, "--customer"):
    let secret = try text(ofFile: arguments[2]).trimmingCharacters(in: .whitespacesAndNewlines)
    print(customerToken(for: arguments[4], key: try CustomerTokenKey(id: arguments[3], secret: secret)))
case (3, _):
    print(try signedToken(for: arguments[2], key: try SigningKey(pem: try text(ofFile: arguments[1]))))
default:
    FileHandle.standardError.write(
        Data("usage: TokenBackend PRIVATE_KEY USER | --customer SECRET_FILE KEY_ID REGISTERED\n".utf8))
    exit(2)
}
