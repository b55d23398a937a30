/// The tables in `control.sqlite` for admin users, tokens, the audit log and enforcement plans.
enum AdminSchema {
    static let script = """
        CREATE TABLE admin_user (
            name TEXT PRIMARY KEY,
            role TEXT NOT NULL,
            password TEXT NOT NULL,
            created_ms INTEGER NOT NULL,
            signed_in_ms INTEGER
        ) STRICT;
        CREATE TABLE admin_session (
            hash BLOB PRIMARY KEY,
            user TEXT NOT NULL REFERENCES admin_user (name) ON DELETE CASCADE,
            expires_ms INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE admin_token (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            hash BLOB NOT NULL UNIQUE,
            scopes TEXT NOT NULL,
            created_ms INTEGER NOT NULL,
            used_ms INTEGER,
            expires_ms INTEGER
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
        CREATE TABLE enforcement_plan (
            app_id TEXT PRIMARY KEY REFERENCES app (id) ON DELETE CASCADE,
            ramp_percent INTEGER NOT NULL CHECK (ramp_percent BETWEEN 1 AND 100),
            scheduled_state TEXT,
            scheduled_ms INTEGER,
            return_percent INTEGER,
            return_minutes INTEGER,
            return_requests INTEGER,
            returned_ms INTEGER,
            returned_percent REAL,
            since_ms INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE alert_webhook (
            app_id TEXT PRIMARY KEY REFERENCES app (id) ON DELETE CASCADE,
            url TEXT NOT NULL,
            secret BLOB NOT NULL,
            allows_private INTEGER NOT NULL
        ) STRICT;
        ALTER TABLE write_key ADD COLUMN description TEXT NOT NULL DEFAULT '';
        """

    static let alerts = """
        CREATE TABLE alert (
            id TEXT PRIMARY KEY,
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            body BLOB NOT NULL,
            attempts INTEGER NOT NULL,
            next_ms INTEGER NOT NULL
        ) STRICT;
        """

    static let secondFactor = """
        CREATE TABLE admin_second_factor (
            user TEXT PRIMARY KEY REFERENCES admin_user (name) ON DELETE CASCADE,
            secret BLOB NOT NULL,
            is_on INTEGER NOT NULL,
            last_step INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE admin_recovery_code (
            user TEXT NOT NULL REFERENCES admin_user (name) ON DELETE CASCADE,
            hash BLOB NOT NULL,
            PRIMARY KEY (user, hash)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE sign_in_rules (
            id INTEGER PRIMARY KEY CHECK (id = 1), second_factor_required INTEGER NOT NULL
        ) STRICT;
        """

    /// Adds the time at which an unconfirmed secret was stored; 0 for a secret that an older version stored.
    static let begunSecondFactor =
        "ALTER TABLE admin_second_factor ADD COLUMN begun_ms INTEGER NOT NULL DEFAULT 0"

    /// Adds the app of a reader token. Deleting the app deletes its reader tokens.
    static let readerTokens =
        "ALTER TABLE admin_token ADD COLUMN app_id TEXT REFERENCES app (id) ON DELETE CASCADE"

    /// The sequence number and hash of the last entry, to detect the removal of trailing entries.
    static let auditHead = """
        CREATE TABLE audit_head (
            id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL
        ) STRICT;
        INSERT INTO audit_head SELECT 1, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'audit'), 0),
            coalesce((SELECT hash FROM audit ORDER BY seq DESC LIMIT 1), zeroblob(32));
        """

    static let pseudonym = """
        CREATE TABLE pseudonym_key (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL) STRICT;
        """
}
