internal import Foundation
internal import GatewayModel

/// The database `control.sqlite`, shared by several stores. PostgreSQL has the same tables.
///
/// The file uses a rollback journal with `synchronous=EXTRA`, because several processes may write, and SQLite before
/// 3.51.3 can then damage a write-ahead log (see `docs/adr/0002-two-databases.md`).
package enum ControlDatabase {
    /// The version that the first migration creates.
    static let oldestVersion = 20

    static let migrations = [
        script, webhookDigest, writeKeyText, publishedKeySets, begunSecondFactor, keySources, restrictions,
    ]

    static func open(_ path: String, at now: Date) throws(GatewayError) -> any SQLDatabase {
        try SQLiteWriter(
            path: path,
            pragmas: "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA foreign_keys = ON",
            migrations, from: oldestVersion, at: now)
    }

    /// `audit_head` has the sequence number and hash of the last entry, to detect that the newest entries were removed.
    package static let script = """
        CREATE TABLE app (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            created_ms INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE write_key (
            hash BLOB PRIMARY KEY,
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            created_ms INTEGER NOT NULL,
            description TEXT NOT NULL DEFAULT '',
            used_ms INTEGER,
            prefix TEXT NOT NULL DEFAULT ''
        ) STRICT;
        CREATE TABLE public_key (
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            id TEXT NOT NULL,
            slot INTEGER NOT NULL CHECK (slot BETWEEN 1 AND 3),
            description TEXT NOT NULL,
            text TEXT NOT NULL,
            added_ms INTEGER NOT NULL,
            PRIMARY KEY (app_id, id)
        ) STRICT;
        CREATE TABLE app_setting (
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (app_id, name)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE customer_token_key (
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            id TEXT NOT NULL,
            secret BLOB NOT NULL,
            created_ms INTEGER NOT NULL,
            PRIMARY KEY (app_id, id)
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
        CREATE TABLE oauth_client (
            id TEXT PRIMARY KEY,
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            secret_hash BLOB,
            public_key TEXT,
            grants TEXT NOT NULL,
            created_ms INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE admin_user (
            name TEXT PRIMARY KEY,
            role TEXT NOT NULL,
            password TEXT NOT NULL,
            created_ms INTEGER NOT NULL,
            signed_in_ms INTEGER
        ) STRICT;
        CREATE TABLE admin_session (
            hash BLOB PRIMARY KEY,
            "user" TEXT NOT NULL REFERENCES admin_user (name) ON DELETE CASCADE,
            expires_ms INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE admin_token (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            hash BLOB NOT NULL UNIQUE,
            scopes TEXT NOT NULL,
            created_ms INTEGER NOT NULL,
            used_ms INTEGER,
            expires_ms INTEGER,
            app_id TEXT REFERENCES app (id) ON DELETE CASCADE
        ) STRICT;
        CREATE TABLE admin_setup (hash BLOB PRIMARY KEY, expires_ms INTEGER NOT NULL) STRICT;
        CREATE TABLE audit (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            at_ms INTEGER NOT NULL,
            actor TEXT NOT NULL,
            role TEXT NOT NULL,
            action TEXT NOT NULL,
            target TEXT NOT NULL,
            app_id TEXT,
            before TEXT,
            after TEXT,
            previous_hash BLOB NOT NULL,
            hash BLOB NOT NULL
        ) STRICT;
        CREATE INDEX audit_app ON audit (app_id, seq);
        CREATE TABLE audit_head (
            id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL
        ) STRICT;
        INSERT INTO audit_head VALUES (1, 0, zeroblob(32));
        CREATE TABLE alert (
            id TEXT PRIMARY KEY,
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            body BLOB NOT NULL,
            attempts INTEGER NOT NULL,
            next_ms INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE admin_second_factor (
            "user" TEXT PRIMARY KEY REFERENCES admin_user (name) ON DELETE CASCADE,
            secret BLOB NOT NULL,
            is_on INTEGER NOT NULL,
            last_step INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE admin_recovery_code (
            "user" TEXT NOT NULL REFERENCES admin_user (name) ON DELETE CASCADE,
            hash BLOB NOT NULL,
            PRIMARY KEY ("user", hash)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE sign_in_rules (
            id INTEGER PRIMARY KEY CHECK (id = 1), second_factor_required INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE pseudonym_key (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL) STRICT;
        CREATE TABLE app_deletion (
            app_id TEXT PRIMARY KEY,
            requested_ms INTEGER NOT NULL,
            free_ms INTEGER,
            erased_ms INTEGER
        ) STRICT;
        CREATE TABLE webhook_endpoint (
            id TEXT PRIMARY KEY,
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            created_ms INTEGER NOT NULL,
            body TEXT NOT NULL
        ) STRICT;
        CREATE TABLE webhook_request (
            id TEXT PRIMARY KEY,
            endpoint_id TEXT NOT NULL REFERENCES webhook_endpoint (id) ON DELETE CASCADE,
            kind TEXT NOT NULL,
            message_id TEXT NOT NULL,
            after_seq INTEGER NOT NULL,
            through_seq INTEGER NOT NULL,
            failures INTEGER NOT NULL,
            next_ms INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE sink (
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            created_ms INTEGER NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (app_id, name)
        ) STRICT, WITHOUT ROWID;
        """

    package static let webhookDigest = "ALTER TABLE webhook_request ADD COLUMN digest TEXT;"

    /// Adds the text of write keys; NULL for keys of earlier versions, which stored only the hash.
    package static let writeKeyText = "ALTER TABLE write_key ADD COLUMN text TEXT;"

    package static let publishedKeySets = """
        CREATE TABLE published_key_set (
            app_id TEXT PRIMARY KEY REFERENCES app (id) ON DELETE CASCADE,
            url TEXT NOT NULL,
            body TEXT NOT NULL,
            fetched_ms INTEGER NOT NULL
        ) STRICT;
        """

    /// Adds the time at which an unconfirmed secret was stored; 0 for a secret that an older version stored.
    package static let begunSecondFactor =
        "ALTER TABLE admin_second_factor ADD COLUMN begun_ms INTEGER NOT NULL DEFAULT 0;"

    /// Allows several key sources for each app. Creates a new table, because SQLite cannot change a primary key.
    private static let keySources = """
        ALTER TABLE published_key_set RENAME TO published_key_set_of_app;
        CREATE TABLE published_key_set (
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            url TEXT NOT NULL,
            body TEXT NOT NULL,
            fetched_ms INTEGER NOT NULL,
            PRIMARY KEY (app_id, url)
        ) STRICT;
        INSERT INTO published_key_set SELECT app_id, url, body, fetched_ms FROM published_key_set_of_app;
        DROP TABLE published_key_set_of_app;
        """

    package static let restrictions = """
        CREATE TABLE user_restriction (
            key TEXT PRIMARY KEY,
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            subject TEXT NOT NULL,
            id TEXT NOT NULL,
            action TEXT NOT NULL,
            per_minute INTEGER,
            reason TEXT NOT NULL,
            since_ms INTEGER NOT NULL,
            until_ms INTEGER,
            UNIQUE (app_id, subject, id, action)
        ) STRICT;
        """
}
