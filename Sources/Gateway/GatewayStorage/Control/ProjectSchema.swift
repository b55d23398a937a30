/// The tables in `control.sqlite` for the Bloomreach dialect.
enum ProjectSchema {
    static let script = """
        CREATE TABLE project (
            app_id TEXT PRIMARY KEY REFERENCES app (id) ON DELETE CASCADE,
            token TEXT UNIQUE,
            customer_tokens TEXT NOT NULL DEFAULT 'off',
            inbox_epoch INTEGER NOT NULL DEFAULT 1
        ) STRICT;
        CREATE TABLE customer_token_key (
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            id TEXT NOT NULL,
            secret BLOB NOT NULL,
            created_ms INTEGER NOT NULL,
            PRIMARY KEY (app_id, id)
        ) STRICT;
        CREATE TABLE push_webhook (
            app_id TEXT PRIMARY KEY REFERENCES app (id) ON DELETE CASCADE,
            url TEXT NOT NULL,
            secret BLOB NOT NULL,
            allows_private_addresses INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE project_item (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            kind TEXT NOT NULL,
            id TEXT NOT NULL,
            body TEXT NOT NULL,
            UNIQUE (app_id, kind, id)
        ) STRICT;
        CREATE TABLE inbox_message (
            revision INTEGER PRIMARY KEY AUTOINCREMENT,
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            id TEXT NOT NULL,
            recipient_name TEXT,
            recipient_value TEXT,
            type TEXT NOT NULL,
            content TEXT NOT NULL,
            created_ms INTEGER NOT NULL,
            expires_ms INTEGER,
            UNIQUE (app_id, id)
        ) STRICT;
        """
}
