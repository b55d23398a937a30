internal import CountersignCore
internal import CountersignJSON
internal import CountersignSQLite
internal import GatewayModel
internal import GatewayStorage

/// Reads and changes the rows of ``ClusterNote`` in the table `cluster_note`.
struct ClusterNotes {
    let connection: PostgreSQLConnection
    /// Reads the key that encrypts some of the notes.
    let tokenKey: @Sendable () throws -> TokenKeySeal?

    /// Changes notes under one advisory lock for all notes, because changes are rare.
    func change<Value>(
        _ names: [ClusterNote.Name], _ body: (inout [ClusterNote.Name: JSONValue]) -> Value
    ) throws -> Value {
        try connection.transaction {
            try connection.execute(
                "SELECT pg_advisory_xact_lock(\(PostgreSQLSchema.lockClass), \(PostgreSQLSchema.AdvisoryLock.notes))"
            )
            var notes: [ClusterNote.Name: JSONValue] = [:]
            for name in names { notes[name] = try note(name) }
            let before = notes
            let value = body(&notes)
            for name in names where notes[name] != before[name] { try keep(notes[name], as: name) }
            return value
        }
    }

    static func sweep(_ connection: PostgreSQLConnection) throws {
        for kind in ClusterNote.Kind.allCases {
            try connection.run(
                "DELETE FROM cluster_note WHERE kind = ?1 AND changed_ms < \(ClusterTables.now) - ?2",
                .text(kind.rawValue), .integer(kind.keptMilliseconds))
        }
    }

    private func note(_ name: ClusterNote.Name) throws -> JSONValue? {
        let text = try connection.first(
            "SELECT body FROM cluster_note WHERE kind = ?1 AND name = ?2", .text(name.kind.rawValue),
            .text(name.text)
        ) { $0.text(0) }
        guard var text else { return nil }
        if name.kind.isSealed {
            guard let opened = try seal().opened(text, as: Self.context(name)) else {
                throw GatewayError(
                    .conflict,
                    "a shared note is sealed with another token key; copy the key's file from another gateway"
                )
            }
            text = opened
        }
        return try? StrictJSONParser(maximumBytes: max(1, text.utf8.count), maximumDepth: 8)
            .parse(bytes: Array(text.utf8)) { $0.value }
    }

    private func keep(_ body: JSONValue?, as name: ClusterNote.Name) throws {
        guard let body else {
            return try connection.run(
                "DELETE FROM cluster_note WHERE kind = ?1 AND name = ?2", .text(name.kind.rawValue),
                .text(name.text))
        }
        var text = String(decoding: body.bytes, as: UTF8.self)
        if name.kind.isSealed { text = try seal().sealed(text, as: Self.context(name)) }
        try connection.run(
            """
            INSERT INTO cluster_note (kind, name, body, changed_ms) VALUES (?1, ?2, ?3, \(ClusterTables.now))
            ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body, changed_ms = excluded.changed_ms
            """, .text(name.kind.rawValue), .text(name.text),
            .text(text))
    }

    private func seal() throws -> TokenKeySeal {
        guard let seal = try tokenKey() else {
            throw GatewayError(.conflict, "the token key's file is missing; copy it from another gateway")
        }
        return seal
    }

    /// The context of the encryption. A text that is copied to another note cannot be decrypted.
    private static func context(_ name: ClusterNote.Name) -> String {
        "countersign \(name.kind.rawValue) \(name.text)"
    }
}
