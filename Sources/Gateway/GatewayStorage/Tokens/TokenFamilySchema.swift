/// The tables of `tokens.sqlite`. PostgreSQL has the same tables, from the same scripts.
package enum TokenFamilySchema {
    /// The version that the first migration creates.
    static let oldestVersion = 4

    static let migrations = [script, expiries]

    /// Nothing uses the column `is_repeated`. Copying between SQLite and PostgreSQL requires equal columns.
    package static let script = """
        CREATE TABLE session (
            id TEXT PRIMARY KEY,
            app_id TEXT NOT NULL,
            subject TEXT NOT NULL,
            client_id TEXT,
            scope TEXT NOT NULL,
            generation INTEGER NOT NULL,
            created_ms INTEGER NOT NULL,
            used_ms INTEGER NOT NULL,
            expires_ms INTEGER NOT NULL,
            revoked_ms INTEGER,
            revocation TEXT,
            lifetime_from_ms INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX session_subject ON session (app_id, subject);
        CREATE INDEX session_revoked ON session (revoked_ms) WHERE revoked_ms IS NOT NULL;
        CREATE INDEX session_expires ON session (expires_ms);
        CREATE INDEX session_created ON session (app_id, created_ms, id);
        CREATE TABLE refresh_token (
            session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
            generation INTEGER NOT NULL,
            hash BLOB NOT NULL,
            nonce BLOB,
            exchanged_ms INTEGER,
            is_repeated INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (session_id, generation)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE revoked_access_token (
            id TEXT PRIMARY KEY,
            expires_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE used_assertion (
            client_id TEXT NOT NULL,
            id TEXT NOT NULL,
            expires_ms INTEGER NOT NULL,
            PRIMARY KEY (client_id, id)
        ) STRICT, WITHOUT ROWID;
        """

    /// Indexes that find expired rows, to delete them.
    package static let expiries = """
        CREATE INDEX revoked_access_token_expires ON revoked_access_token (expires_ms);
        CREATE INDEX used_assertion_expires ON used_assertion (expires_ms);
        """
}
