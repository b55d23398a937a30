import CountersignJOSE
import Foundation

/// An app that requires tokens, and tokens for it.
struct Credentials {
    let dataDirectory: String
    let writeKey: String
    /// The app's public key, as PEM in a file.
    let publicKeyPath: String
    /// One token a line.
    let tokenFiles: [String: String]

    /// More than the gateway's memory of tokens holds (16 MiB, about 1.5 KB a token).
    static let freshTokens = 16_000

    init(countersign: String, folder: URL) throws {
        let data = folder.appendingPathComponent("data").path
        func run(_ arguments: String...) throws -> String {
            try Command.output(countersign, arguments, folder: folder)
        }
        let own = try SigningKey.generate(.rs256)
        let other = try SigningKey.generate(.rs256)
        publicKeyPath = folder.appendingPathComponent("public.pem").path
        try own.publicKey.pem.write(toFile: publicKeyPath, atomically: true, encoding: .utf8)
        dataDirectory = data
        writeKey = try run("app", "create", "bench", "--data", data)
        _ = try run("key", "add", "bench", publicKeyPath, "--data", data)
        _ = try run("enforcement", "set", "bench", "required", "--data", data)
        let now = Int64(Date().timeIntervalSince1970)
        func file(_ name: String, _ key: SigningKey, count: Int, expires: Int64) throws -> String {
            let path = folder.appendingPathComponent("\(name).txt").path
            let tokens = try (0..<count).map { number in
                try key.sign(claims: [
                    "sub": "user-1", "iat": .integer(expires - 3_600), "exp": .integer(expires),
                    "jti": .string(String(number)),
                ])
            }
            try tokens.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
            return path
        }
        tokenFiles = [
            "one": try file("one", own, count: 1, expires: now + 3_600),
            "fresh": try file("fresh", own, count: Self.freshTokens, expires: now + 3_600),
            "expired": try file("expired", own, count: 1, expires: now - 3_600),
            "forged": try file("forged", other, count: 1, expires: now + 3_600),
        ]
    }
}
