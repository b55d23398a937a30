/// The tables in `control.sqlite` of what operators set for the token service.
enum TokenSchema {
    static let script = """
        CREATE TABLE token_rules (
            app_id TEXT PRIMARY KEY REFERENCES app (id) ON DELETE CASCADE,
            allows_registration INTEGER NOT NULL,
            access_seconds INTEGER NOT NULL,
            refresh_seconds INTEGER NOT NULL,
            reuse_seconds INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE oauth_client (
            id TEXT PRIMARY KEY,
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            secret_hash BLOB,
            public_key TEXT,
            grants TEXT NOT NULL,
            created_ms INTEGER NOT NULL
        ) STRICT;
        """

    /// A session that was allowed to rest for longer than the default may go on doing so.
    static let absoluteLifetime = """
        ALTER TABLE token_rules ADD COLUMN absolute_seconds INTEGER NOT NULL DEFAULT 7776000;
        UPDATE token_rules SET absolute_seconds = max(absolute_seconds, refresh_seconds),
            reuse_seconds = min(reuse_seconds, 60);
        """

    /// Shorter windows were set when they hardly mattered. Now they log out devices that lose an answer, or refresh twice at
    /// once.
    static let usualReuseWindow = "UPDATE token_rules SET reuse_seconds = 60 WHERE reuse_seconds < 60;"
}
