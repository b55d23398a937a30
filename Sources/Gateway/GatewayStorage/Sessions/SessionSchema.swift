/// The tables of `tokens.sqlite`.
enum SessionSchema {
    static let migrations = [
        """
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
            revocation TEXT
        ) STRICT;
        CREATE INDEX session_subject ON session (app_id, subject);
        CREATE INDEX session_revoked ON session (revoked_ms) WHERE revoked_ms IS NOT NULL;
        CREATE INDEX session_expires ON session (expires_ms);
        CREATE TABLE refresh_token (
            session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
            generation INTEGER NOT NULL,
            hash BLOB NOT NULL,
            nonce BLOB,
            exchanged_ms INTEGER,
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
        CREATE TABLE session_audit (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            at_ms INTEGER NOT NULL,
            app_id TEXT NOT NULL,
            session_id TEXT NOT NULL,
            action TEXT NOT NULL,
            generation INTEGER,
            address TEXT
        ) STRICT;
        CREATE INDEX session_audit_app ON session_audit (app_id, seq);
        """,
        "CREATE INDEX session_created ON session (app_id, created_ms, id);",
        // The absolute lifetime of existing sessions starts with the upgrade, so that they do not all end at once.
        """
        ALTER TABLE session ADD COLUMN lifetime_from_ms INTEGER NOT NULL DEFAULT 0;
        UPDATE session SET lifetime_from_ms = 1000 * CAST(strftime('%s', 'now') AS INTEGER);
        ALTER TABLE refresh_token ADD COLUMN is_repeated INTEGER NOT NULL DEFAULT 0;
        """,
        // Keeps the unused column `is_repeated`, which gateways of earlier versions write in PostgreSQL.
        "DROP TABLE session_audit;",
        // Indexes that find expired rows, to delete them.
        """
        CREATE INDEX revoked_access_token_expires ON revoked_access_token (expires_ms);
        CREATE INDEX used_assertion_expires ON used_assertion (expires_ms);
        """,
    ]
}
