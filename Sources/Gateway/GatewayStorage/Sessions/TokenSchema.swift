/// The tables in `control.sqlite` with settings of the token service.
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

    /// Raises the absolute lifetime to a longer idle lifetime, and limits the reuse window to 60 s.
    static let absoluteLifetime = """
        ALTER TABLE token_rules ADD COLUMN absolute_seconds INTEGER NOT NULL DEFAULT 7776000;
        UPDATE token_rules SET absolute_seconds = max(absolute_seconds, refresh_seconds),
            reuse_seconds = min(reuse_seconds, 60);
        """

    /// Raises shorter windows, because they sign out devices that lose a response or refresh twice at once.
    static let usualReuseWindow = "UPDATE token_rules SET reuse_seconds = 60 WHERE reuse_seconds < 60;"
}
