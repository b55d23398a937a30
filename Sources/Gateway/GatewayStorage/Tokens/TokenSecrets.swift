internal import CountersignCore
internal import CountersignJOSE
package import CountersignSQLite
package import Foundation
package import GatewayModel

/// The keys that sign access tokens and the key of refresh tokens, in `token-keys.sqlite` or another database.
///
/// The file has mode 0600. It is separate, so that a copy of `tokens.sqlite` alone is useless. After 90 days, the next
/// signing key is published, and signs an hour later. The old key then stays published until its last token expires.
package final class TokenSecrets: Sendable {
    /// How long a key signs before the next one is created.
    static let signingMilliseconds: Int64 = 90 * 86_400_000
    /// How long a key is published before it signs.
    package static let leadMilliseconds: Int64 = 3_600_000
    /// How long a key is published after the next one has begun to sign: the maximum lifetime of a token.
    package static let overlapMilliseconds = Milliseconds(seconds: TokenRules.accessRange.upperBound).count

    package struct Seal: Sendable {
        package var seal: @Sendable (SQLValue) throws -> SQLValue
        package var open: @Sendable ([UInt8]) throws -> [UInt8]

        /// No encryption, for a file that only the gateway's account may read.
        static let none = Seal(seal: { $0 }, open: { $0 })
    }

    package static let schema = """
        CREATE TABLE refresh_key (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL) STRICT;
        CREATE TABLE signing_key (
            id TEXT PRIMARY KEY,
            pem TEXT NOT NULL,
            signs_from_ms INTEGER NOT NULL
        ) STRICT;
        """

    private let database: any SQLDatabase
    private let seal: Seal
    private let state = Lock(State())

    private struct State {
        var version: Int64?
        var keys: [IssuingKey] = []
        var refreshKey: [UInt8]?
    }

    package convenience init(dataDirectory: DataDirectory, at now: Date) throws(GatewayError) {
        let file = try SQLiteWriter(
            path: try dataDirectory.file("token-keys.sqlite"),
            pragmas: "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA", [Self.schema], at: now)
        self.init(file, seal: .none)
    }

    package init(_ database: any SQLDatabase, seal: Seal) {
        self.database = database
        self.seal = seal
    }

    /// The key from which refresh tokens derive. Created on the first call and then unchanged.
    package func refreshKey() throws(GatewayError) -> [UInt8] {
        try use { state in
            if let key = state.refreshKey { return key }
            let kept =
                try database.read { try Self.refreshKey($0) }
                ?? database.write { connection in
                    // Another process may have created the key since the read.
                    try connection.run(
                        "INSERT INTO refresh_key (id, key) VALUES (1, ?) ON CONFLICT DO NOTHING",
                        seal.seal(.blob(.random(count: 32))))
                    return try Self.refreshKey(connection) ?? []
                }
            let key = try seal.open(kept)
            state.refreshKey = key
            return key
        }
    }

    /// The published keys, which verify tokens now, newest first. Empty before the first key was created.
    package func published(at now: Int64) throws(GatewayError) -> [IssuingKey] {
        try use { state in
            try load(&state)
            return Self.published(state.keys, at: now)
        }
    }

    /// The key that signs now; created if necessary.
    package func signer(at now: Int64) throws(GatewayError) -> IssuingKey {
        try use { state in
            if state.keys.isEmpty { try load(&state) }
            if let key = Self.signer(state.keys, at: now) { return key }
            let made = try Self.make(signsFrom: now)
            // Another process may have created a key since the read.
            state.keys = try add(made, to: state.keys) { Self.signer($0, at: now) == nil }
            return Self.signer(state.keys, at: now) ?? made
        }
    }

    package func rotate(signsFrom instant: Int64, endsOthers: Bool = false) throws(GatewayError) -> IssuingKey
    {
        try rotate(endsOthers: endsOthers) { try Self.make(signsFrom: instant) }
    }

    package func rotate(
        endsOthers: Bool = false, _ make: () throws -> IssuingKey
    ) throws(GatewayError) -> IssuingKey {
        try use { state in
            let made = try make()
            let known = state.keys
            state.keys = try database.write { connection in
                if endsOthers { try connection.run("DELETE FROM signing_key") }
                try insert(made, connection)
                return try keys(connection, known: known)
            }
            return made
        }
    }

    /// Creates the next signing key when it is due, and deletes old keys. Returns the published keys.
    package func maintain(at now: Int64) throws(GatewayError) -> [IssuingKey]? {
        try use { state in
            try load(&state)
            if Self.needsNext(state.keys, at: now) {
                let made = try Self.make(signsFrom: now + Self.leadMilliseconds)
                // Another gateway may have created the key since the read.
                state.keys = try add(made, to: state.keys) { Self.needsNext($0, at: now) }
            }
            let published = Self.published(state.keys, at: now)
            let retired = state.keys.filter { key in !published.contains { $0.id == key.id } }
            if !retired.isEmpty {
                let known = state.keys
                state.keys = try database.write { connection in
                    for key in retired {
                        try connection.run("DELETE FROM signing_key WHERE id = ?", .text(key.id))
                    }
                    return try keys(connection, known: known)
                }
            }
            return published
        }
    }

    // MARK: Rules

    private static func signer(_ keys: [IssuingKey], at now: Int64) -> IssuingKey? {
        keys.filter { $0.signsFromMilliseconds <= now }.max {
            $0.signsFromMilliseconds < $1.signsFromMilliseconds
        }
    }

    /// Excludes a key once its successor has signed for the maximum lifetime of a token.
    private static func published(_ keys: [IssuingKey], at now: Int64) -> [IssuingKey] {
        let sorted = keys.sorted { $0.signsFromMilliseconds > $1.signsFromMilliseconds }
        return sorted.enumerated().filter { index, _ in
            index == 0 || now < sorted[index - 1].signsFromMilliseconds + overlapMilliseconds
        }.map(\.element)
    }

    /// Whether the newest key has signed for its full period.
    private static func needsNext(_ keys: [IssuingKey], at now: Int64) -> Bool {
        // Ignores keys that sign later than a key created now. The clock was ahead when they were created.
        keys.map(\.signsFromMilliseconds)
            .filter { $0 <= DueTime.last(at: now, within: leadMilliseconds) }.max()
            .map { now >= $0 + signingMilliseconds } ?? false
    }

    private static func make(signsFrom instant: Int64) throws -> IssuingKey {
        IssuingKey(try SigningKey.generate(.rs256), signsFromMilliseconds: instant)
    }

    // MARK: Rows

    private static func refreshKey(_ connection: any SQLConnection) throws -> [UInt8]? {
        try connection.first("SELECT key FROM refresh_key") { $0.blob(0) }
    }

    /// Stores the key if `isNeeded` returns true for the stored keys. Returns all stored keys.
    private func add(
        _ key: IssuingKey, to known: [IssuingKey], if isNeeded: ([IssuingKey]) -> Bool
    ) throws -> [IssuingKey] {
        try database.write { connection in
            let there = try keys(connection, known: known)
            guard isNeeded(there) else { return there }
            try insert(key, connection)
            return try keys(connection, known: there + [key])
        }
    }

    private func insert(_ key: IssuingKey, _ connection: any SQLConnection) throws {
        try connection.run(
            "INSERT INTO signing_key (id, pem, signs_from_ms) VALUES (?, ?, ?)", .text(key.id),
            seal.seal(.text(key.key.privatePEM)), .integer(key.signsFromMilliseconds))
    }

    /// Reads the keys if another connection has changed the database.
    private func load(_ state: inout State) throws {
        let version = try database.version()
        guard version != state.version else { return }
        let known = state.keys
        state.keys = try database.read { try keys($0, known: known) }
        state.version = version
    }

    private func keys(_ connection: any SQLConnection, known: [IssuingKey]) throws -> [IssuingKey] {
        let known = BytewiseDictionary(known.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        return try connection.all("SELECT id, pem, signs_from_ms FROM signing_key ORDER BY id") {
            ($0.text(0), $0.blob(1), $0.int64(2))
        }.map { id, pem, signsFrom in
            try known[id]
                ?? IssuingKey(
                    SigningKey(
                        pem: String(decoding: try seal.open(pem), as: UTF8.self), algorithm: .rs256),
                    signsFromMilliseconds: signsFrom)
        }
    }

    private func use<Value>(_ body: (inout State) throws -> Value) throws(GatewayError) -> Value {
        try state.withLock { state throws(GatewayError) in
            try GatewayError.storing { try body(&state) }
        }
    }
}
