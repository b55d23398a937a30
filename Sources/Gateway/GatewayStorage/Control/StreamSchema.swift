/// The table of streams in `control.sqlite`.
enum StreamSchema {
    static let script = """
        CREATE TABLE sink (
            app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            created_ms INTEGER NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (app_id, name)
        ) STRICT, WITHOUT ROWID;
        """
}
