/// The table in `control.sqlite` of app settings: a row for each app and ``AppSetting``.
enum AppSettingSchema {
    /// Migrates the settings from separate tables and columns.
    static let script = """
        CREATE TABLE app_setting (
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (app_id, name)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO app_setting SELECT id, 'policy', json_object(
                'algorithms', json('["' || replace(algorithms, ' ', '","') || '"]'),
                'leeway_seconds', leeway_seconds, 'maximum_lifetime_seconds', maximum_lifetime_seconds,
                'audience', audience, 'issuer', issuer,
                'required', json('[' || trim(
                    CASE WHEN requires_audience THEN '"aud",' ELSE '' END
                    || CASE WHEN requires_issuer THEN '"iss",' ELSE '' END
                    || CASE WHEN requires_type THEN '"typ"' ELSE '' END, ',') || ']'))
            FROM app;
        INSERT INTO app_setting SELECT id, 'enforcement', json_object(
                'state', enforcement, 'ramp_percent', coalesce(ramp_percent, 100),
                'scheduled', json(CASE WHEN scheduled_state IS NULL THEN 'null' ELSE json_object(
                    'state', scheduled_state, 'at_ms', scheduled_ms,
                    'ramp_percent', coalesce(scheduled_ramp, 100)) END),
                'auto_return', json(CASE WHEN return_percent IS NULL THEN 'null' ELSE json_object(
                    'rejected_percent', return_percent, 'window_minutes', return_minutes,
                    'minimum_requests', return_requests) END),
                'returned', json(CASE WHEN returned_ms IS NULL THEN 'null' ELSE json_object(
                    'at_ms', returned_ms, 'rejected_percent', returned_percent) END),
                'since_ms', coalesce(since_ms, created_ms))
            FROM app LEFT JOIN enforcement_plan ON app_id = id;
        INSERT INTO app_setting SELECT app_id, 'rules', json_object(
                'origins', json(CASE origins WHEN '' THEN '[]'
                    ELSE '["' || replace(origins, ' ', '","') || '"]' END),
                'retention_days', retention_days, 'retention_bytes', retention_bytes)
            FROM app_rules;
        INSERT INTO app_setting SELECT app_id, 'token_rules', json_object(
                'registration', CASE WHEN allows_registration THEN 'open' ELSE 'closed' END,
                'access_seconds', access_seconds, 'refresh_seconds', refresh_seconds,
                'reuse_seconds', reuse_seconds, 'absolute_seconds', absolute_seconds)
            FROM token_rules;
        INSERT INTO app_setting SELECT app_id, 'key_source', json_object(
                'url', url, 'allow_private', json(CASE WHEN allows_private THEN 'true' ELSE 'false' END))
            FROM key_source;
        INSERT INTO app_setting SELECT app_id, 'webhook', json_object(
                'url', url, 'secret', lower(hex(secret)),
                'allow_private', json(CASE WHEN allows_private THEN 'true' ELSE 'false' END))
            FROM alert_webhook;
        INSERT INTO app_setting SELECT project.app_id, 'project', json_object(
                'token', coalesce(token, project.app_id), 'customer_tokens', customer_tokens,
                'webhook', json(CASE WHEN url IS NULL THEN 'null' ELSE json_object(
                    'url', url, 'secret', lower(hex(secret)), 'allow_private',
                    json(CASE WHEN allows_private_addresses THEN 'true' ELSE 'false' END)) END),
                'inbox_epoch', inbox_epoch)
            FROM project LEFT JOIN push_webhook ON push_webhook.app_id = project.app_id;
        DROP TABLE enforcement_plan;
        DROP TABLE app_rules;
        DROP TABLE token_rules;
        DROP TABLE key_source;
        DROP TABLE alert_webhook;
        DROP TABLE push_webhook;
        DROP TABLE project;
        ALTER TABLE app DROP COLUMN enforcement;
        ALTER TABLE app DROP COLUMN algorithms;
        ALTER TABLE app DROP COLUMN leeway_seconds;
        ALTER TABLE app DROP COLUMN maximum_lifetime_seconds;
        ALTER TABLE app DROP COLUMN audience;
        ALTER TABLE app DROP COLUMN issuer;
        ALTER TABLE app DROP COLUMN requires_audience;
        ALTER TABLE app DROP COLUMN requires_issuer;
        ALTER TABLE app DROP COLUMN requires_type;
        """

    static let publishedKeySets = """
        CREATE TABLE published_key_set (
            app_id TEXT PRIMARY KEY REFERENCES app (id) ON DELETE CASCADE,
            url TEXT NOT NULL,
            body TEXT NOT NULL,
            fetched_ms INTEGER NOT NULL
        ) STRICT;
        """

    static let restrictions = """
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

    static let keySources = """
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
}
