internal import CountersignCore
internal import CountersignJOSE
internal import CountersignSQLite
package import GatewayModel

/// `token-keys.sqlite`: the keys that sign access tokens and the one that refresh tokens are made with.
///
/// In a file of its own with mode 0600, so that a copy of the sessions alone is worth nothing. A signing key is made when
/// the first token is; a new one is made every 90 days, published an hour before it signs, and the old one stays published
/// until the last token that it signed has expired.
package final class TokenSecrets: Sendable {
    /// How long a key signs until the next one is made.
    static let signingMilliseconds: Int64 = 90 * 86_400_000
    /// How long a key is published before it signs.
    package static let leadMilliseconds: Int64 = 3_600_000
    /// How long a key is published after another has begun to sign: no token lives longer.
    package static let overlapMilliseconds = Int64(TokenRules.accessRange.upperBound) * 1000

    private let state: Lock<State>

    // `Lock` gives the connection to one thread at a time.
    private struct State: @unchecked Sendable {
        let sqlite: SQLiteConnection
        var version: Int64?
        var keys: [IssuingKey] = []
        var refreshKey: [UInt8]?
    }

    /// Opens the file in a data directory, and makes it when it is not there. Throws `dataDirectory` or `storage`.
    package init(dataDirectory: DataDirectory) throws(GatewayError) {
        let path = try dataDirectory.file("token-keys.sqlite")
        do {
            let sqlite = try SQLiteConnection(path: path)
            try sqlite.execute("PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA")
            try Schema.migrate(
                sqlite,
                [
                    """
                    CREATE TABLE refresh_key (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL) STRICT;
                    CREATE TABLE signing_key (
                        id TEXT PRIMARY KEY,
                        pem TEXT NOT NULL,
                        signs_from_ms INTEGER NOT NULL
                    ) STRICT;
                    """
                ])
            state = Lock(State(sqlite: sqlite))
        } catch {
            throw GatewayError(.storage, "cannot open the token keys: \(error)")
        }
    }

    /// The key that refresh tokens are made with; the same for ever.
    package func refreshKey() throws(GatewayError) -> [UInt8] {
        try use { state in
            if let key = state.refreshKey { return key }
            let kept = try state.sqlite.first("SELECT key FROM refresh_key") { $0.blob(0) }
            let key =
                try kept
                ?? state.sqlite.transaction {
                    // Another process may have been faster: what is there stays.
                    try state.sqlite.run(
                        "INSERT INTO refresh_key (id, key) VALUES (1, ?) ON CONFLICT DO NOTHING",
                        .blob(.random(count: 32)))
                    return try state.sqlite.first("SELECT key FROM refresh_key") { $0.blob(0) } ?? []
                }
            state.refreshKey = key
            return key
        }
    }

    /// The keys that verify now, the one that signs last first. Empty before the first token.
    package func published(at now: Int64) throws(GatewayError) -> [IssuingKey] {
        try use { state in
            try Self.load(&state)
            return Self.published(state.keys, at: now)
        }
    }

    /// The key that signs now; made when there is none.
    package func signer(at now: Int64) throws(GatewayError) -> IssuingKey {
        try use { state in
            if state.keys.isEmpty { try Self.load(&state) }
            if let key = Self.signer(state.keys, at: now) { return key }
            let made = try Self.make(signsFrom: now)
            try state.sqlite.transaction {
                try Self.readKeys(&state)
                // Another process may have been faster.
                if Self.signer(state.keys, at: now) == nil { try Self.insert(made, state.sqlite) }
            }
            try Self.readKeys(&state)
            return Self.signer(state.keys, at: now) ?? made
        }
    }

    /// Makes a key that signs from `instant` on. Throws `storage`.
    package func rotate(signsFrom instant: Int64, endsOthers: Bool = false) throws(GatewayError) -> IssuingKey
    {
        try use { state in
            let made = try Self.make(signsFrom: instant)
            try state.sqlite.transaction {
                if endsOthers { try state.sqlite.run("DELETE FROM signing_key") }
                try Self.insert(made, state.sqlite)
            }
            try Self.readKeys(&state)
            return made
        }
    }

    /// Makes a new key when it is time to, and deletes those that verify nothing any more. Returns the keys that verify
    /// now, when they may have changed since the last call; else nil.
    package func maintain(at now: Int64) throws(GatewayError) -> [IssuingKey]? {
        let newest = try published(at: now).map(\.signsFromMilliseconds).max()
        if let newest, now >= newest + Self.signingMilliseconds {
            _ = try rotate(signsFrom: now + Self.leadMilliseconds)
        }
        return try use { state in
            let published = Self.published(state.keys, at: now)
            let retired = state.keys.filter { key in !published.contains { $0.id == key.id } }
            for key in retired {
                try state.sqlite.run("DELETE FROM signing_key WHERE id = ?", .text(key.id))
            }
            if !retired.isEmpty { try Self.readKeys(&state) }
            return published
        }
    }

    // MARK: Rules

    private static func signer(_ keys: [IssuingKey], at now: Int64) -> IssuingKey? {
        keys.filter { $0.signsFromMilliseconds <= now }.max {
            $0.signsFromMilliseconds < $1.signsFromMilliseconds
        }
    }

    /// A key goes when the next one has signed for longer than any token lives.
    private static func published(_ keys: [IssuingKey], at now: Int64) -> [IssuingKey] {
        let sorted = keys.sorted { $0.signsFromMilliseconds > $1.signsFromMilliseconds }
        return sorted.enumerated().filter { index, _ in
            index == 0 || now < sorted[index - 1].signsFromMilliseconds + overlapMilliseconds
        }.map(\.element)
    }

    private static func make(signsFrom instant: Int64) throws -> IssuingKey {
        IssuingKey(try SigningKey.generate(.rs256), signsFromMilliseconds: instant)
    }

    // MARK: Rows

    private static func insert(_ key: IssuingKey, _ sqlite: SQLiteConnection) throws {
        try sqlite.run(
            "INSERT INTO signing_key (id, pem, signs_from_ms) VALUES (?, ?, ?)", .text(key.id),
            .text(key.key.privatePEM),
            .integer(key.signsFromMilliseconds))
    }

    /// Reads the keys when somebody else has changed them since the last look.
    private static func load(_ state: inout State) throws {
        let version = try state.sqlite.dataVersion()
        guard version != state.version else { return }
        try readKeys(&state)
        state.version = version
    }

    private static func readKeys(_ state: inout State) throws {
        let known = Dictionary(state.keys.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        state.keys = try state.sqlite.all("SELECT id, pem, signs_from_ms FROM signing_key") {
            ($0.text(0), $0.text(1), $0.int64(2))
        }.map { id, pem, signsFrom in
            try known[id]
                ?? IssuingKey(SigningKey(pem: pem, algorithm: .rs256), signsFromMilliseconds: signsFrom)
        }
    }

    private func use<Value>(_ body: (inout State) throws -> Value) throws(GatewayError) -> Value {
        try state.withLock { state throws(GatewayError) in
            try GatewayError.storing { try body(&state) }
        }
    }
}
