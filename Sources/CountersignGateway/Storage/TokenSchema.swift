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
}
