/// The table in `control.sqlite` of deleted apps with unavailable ids.
enum AppDeletionSchema {
    static let script = """
        CREATE TABLE app_deletion (
            app_id TEXT PRIMARY KEY,
            requested_ms INTEGER NOT NULL,
            free_ms INTEGER,
            erased_ms INTEGER
        ) STRICT;
        """
}
