internal import Foundation
internal import GatewayModel

/// The database `control.sqlite`, shared by several stores.
///
/// The file uses a rollback journal with `synchronous=EXTRA`, because several connections may write (see
/// `docs/adr/0002-two-databases.md`).
enum ControlDatabase {
    static let migrations = [
        """
        CREATE TABLE app (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            enforcement TEXT NOT NULL,
            algorithms TEXT NOT NULL,
            leeway_seconds REAL NOT NULL,
            maximum_lifetime_seconds REAL,
            audience TEXT,
            issuer TEXT,
            requires_audience INTEGER NOT NULL,
            requires_issuer INTEGER NOT NULL,
            requires_type INTEGER NOT NULL,
            created_ms INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE write_key (
            hash BLOB PRIMARY KEY,
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            created_ms INTEGER NOT NULL
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
        """,
        ProjectSchema.script,
        AppRulesSchema.script,
        """
        CREATE TABLE key_source (
            app_id TEXT PRIMARY KEY REFERENCES app (id) ON DELETE CASCADE,
            url TEXT NOT NULL,
            allows_private INTEGER NOT NULL
        ) STRICT;
        """,
        TokenSchema.script,
        AdminSchema.script,
        AdminSchema.alerts,
        "ALTER TABLE write_key ADD COLUMN used_ms INTEGER",
        "ALTER TABLE enforcement_plan ADD COLUMN scheduled_ramp INTEGER",
        TokenSchema.absoluteLifetime,
        AdminSchema.pseudonym,
        AdminSchema.secondFactor,
        TokenSchema.usualReuseWindow,
        AppSettingSchema.script,
        AdminSchema.readerTokens,
        AppDeletionSchema.script,
        WebhookSchema.script,
        "ALTER TABLE write_key ADD COLUMN prefix TEXT NOT NULL DEFAULT ''",
        StreamSchema.script,
        AdminSchema.auditHead,
        WebhookSchema.digest,
        // NULL for keys of earlier versions, which stored only the hash.
        "ALTER TABLE write_key ADD COLUMN text TEXT",
        AppSettingSchema.publishedKeySets,
        AdminSchema.begunSecondFactor,
        AppSettingSchema.keySources,
        AppSettingSchema.restrictions,
    ]

    static func open(_ path: String, at now: Date) throws(GatewayError) -> any SQLDatabase {
        try SQLiteWriter(
            path: path,
            pragmas: "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA foreign_keys = ON",
            migrations, at: now)
    }
}
