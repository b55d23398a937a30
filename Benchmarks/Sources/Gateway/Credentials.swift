import CountersignJOSE
import Foundation

/// An app that requires tokens, and tokens for it.
struct Credentials {
    let dataDirectory: String
    let writeKey: String
    /// The file with the app's public key as PEM.
    let publicKeyPath: String
    /// Files with one token in each line.
    let tokenFiles: [String: String]

    /// More tokens than fit into the gateway's cache of verified tokens (96 MiB, at least 0.7 KB a token).
    static let freshTokens = 150_000

    /// Creates the app, `fresh` tokens of one user, and the tokens for each kind of traffic.
    init(countersign: String, folder: URL, fresh: Int = 1, kinds: [Traffic.Kind] = []) throws {
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
        _ = try run("enforcement", "set", "bench", "required", "--yes", "--data", data)
        let now = Int64(Date().timeIntervalSince1970)
        func file(_ name: String, _ key: SigningKey, count: Int, expires: Int64) throws -> String {
            let path = folder.appendingPathComponent("\(name).txt").path
            let tokens = try Self.sign(count) { number in
                try key.sign(claims: [
                    "sub": "user-1", "iat": .integer(expires - 3_600), "exp": .integer(expires),
                    "jti": .string(String(number)),
                ])
            }
            try tokens.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
            return path
        }
        // Signs once for the largest kind. Smaller kinds use the first of these users.
        let tokens = try Self.sign(kinds.filter { !$0.isFresh }.map(\.users).max() ?? 0) { number in
            try own.sign(claims: [
                "sub": .string("user-\(number + 1)"), "iat": .integer(now), "exp": .integer(now + 86_400),
            ])
        }
        var files: [String: String] = [:]
        for kind in kinds where files[kind.tokens.file] == nil {
            let path = folder.appendingPathComponent("\(kind.tokens.file).txt").path
            let lines =
                kind.isFresh
                ? try Self.sign(Self.freshTokens) { number in
                    try own.sign(claims: [
                        "sub": .string("user-\(number % kind.users + 1)"), "iat": .integer(now),
                        "exp": .integer(now + 86_400), "jti": .string(String(number)),
                    ])
                } : Array(tokens.prefix(kind.users))
            try lines.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
            files[kind.tokens.file] = path
        }
        tokenFiles = [
            "one": try file("one", own, count: 1, expires: now + 3_600),
            "fresh": try file("fresh", own, count: fresh, expires: now + 3_600),
            "expired": try file("expired", own, count: 1, expires: now - 3_600),
            "forged": try file("forged", other, count: 1, expires: now + 3_600),
        ].merging(files) { $1 }
    }

    /// Signs `count` tokens on all processors.
    private static func sign(
        _ count: Int, _ token: @Sendable @escaping (Int) throws -> String
    ) throws -> [String] {
        let pieces = Pieces()
        let size = 1_000
        DispatchQueue.concurrentPerform(iterations: (count + size - 1) / size) { piece in
            let tokens = Result {
                try (piece * size..<min(count, (piece + 1) * size)).map { try token($0) }
            }
            pieces.put(tokens, at: piece)
        }
        return try pieces.all().flatMap { try $0.get() }
    }
}

/// Tokens that several threads sign in parallel, in order.
private final class Pieces: @unchecked Sendable {
    private let lock = NSLock()
    private var pieces: [Int: Result<[String], any Error>] = [:]

    func put(_ piece: Result<[String], any Error>, at index: Int) {
        lock.lock()
        pieces[index] = piece
        lock.unlock()
    }

    func all() -> [Result<[String], any Error>] {
        lock.lock()
        defer { lock.unlock() }
        return pieces.sorted { $0.key < $1.key }.map(\.value)
    }
}
