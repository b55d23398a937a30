/// The table of ``AppRules`` in `control.sqlite`.
enum AppRulesSchema {
    static let script = """
        CREATE TABLE app_rules (
            app_id TEXT PRIMARY KEY REFERENCES app (id) ON DELETE CASCADE,
            origins TEXT NOT NULL,
            retention_days INTEGER CHECK (retention_days > 0),
            retention_bytes INTEGER CHECK (retention_bytes >= 0)
        ) STRICT;
        """
}
