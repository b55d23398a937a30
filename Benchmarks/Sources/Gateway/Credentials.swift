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

    /// Creates the app and the files of tokens.
    init(countersign: String, folder: URL, tokens kinds: [GatewayBenchmark.Tokens]) throws {
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
        func sign(_ count: Int, _ users: Int, key: SigningKey = own, expires: Int64 = now + 86_400) throws
            -> [String]
        {
            try Self.sign(count) { number in
                try key.sign(claims: [
                    "sub": .string("user-\(number % users + 1)"), "iat": .integer(expires - 86_400),
                    "exp": .integer(expires), "jti": .string(String(number)),
                ])
            }
        }
        var files: [String: String] = [:]
        for kind in kinds where files[kind.file] == nil {
            let tokens =
                switch kind {
                case .users(let users): try sign(users, users)
                case .freshOfUsers(let users): try sign(Self.freshTokens, users)
                case .expired: try sign(1, 1, expires: now - 3_600)
                case .forged: try sign(1, 1, key: other)
                }
            let path = folder.appendingPathComponent("\(kind.file).txt").path
            try tokens.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
            files[kind.file] = path
        }
        tokenFiles = files
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
