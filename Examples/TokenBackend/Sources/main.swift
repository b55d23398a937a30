// Prints a token for a user: TokenBackend PRIVATE_KEY USER
import CountersignJOSE
import Foundation

/// A token that says: my backend knows this user.
func signedToken(for userID: String, key: SigningKey, lifetime: Int64 = 3600) throws -> String {
    let now = Int64(Date().timeIntervalSince1970)
    return try key.sign(
        claims: ["sub": .string(userID), "iat": .integer(now), "exp": .integer(now + lifetime)])
}

let arguments = CommandLine.arguments
guard arguments.count == 3 else {
    FileHandle.standardError.write(Data("usage: TokenBackend PRIVATE_KEY USER\n".utf8))
    exit(2)
}
let key = try SigningKey(pem: try String(contentsOfFile: arguments[1], encoding: .utf8))
print(try signedToken(for: arguments[2], key: key))
