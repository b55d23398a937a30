/// The tables of webhook endpoints in `control.sqlite`.
enum WebhookSchema {
    static let script = """
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
        """

    static let digest = "ALTER TABLE webhook_request ADD COLUMN digest TEXT"
}
