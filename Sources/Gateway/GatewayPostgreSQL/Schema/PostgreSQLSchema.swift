internal import CountersignCore
internal import CountersignSQLite
package import GatewayModel
internal import GatewayStorage

/// The schema `countersign` in the operator's database, and its migrations.
package enum PostgreSQLSchema {
    /// The class of the gateway's advisory locks: `pg_advisory_lock(class, …)`.
    static let lockClass = 0x4353
    /// The numbers of advisory locks in ``lockClass``. Duties of a cluster use 100 and higher (`PostgreSQLMember`).
    enum AdvisoryLock {
        static let migration: Int64 = 1
        static let notes: Int64 = 2
        static let copy: Int64 = 3
        static let upkeep: Int64 = 4
    }

    /// Never change a migration. A program must work with the schema of the next version, so a migration removes
    /// something only when no older program can be running.
    static let migrations = [
        texts(
            ControlTables.script + CountTables.script + EventLogSchema.script + EventConsumerSchema.script
                + CustomerSchema.script + GenerationTable.script + ClusterTables.script),
        texts(ClusterTables.talk),
        ClusterTables.seals,
        ClusterTables.sessionHistory,
        texts(CountTables.deliveryContent),
        texts(ControlTables.writeKeyText),
        CustomerSchema.propertyLimit,
        texts(ControlTables.publishedKeySets),
        ControlTables.begunSecondFactor,
        ControlTables.expiries,
        texts(ProgressColumns.script(integer: "BIGINT")),
        ControlTables.keySources,
        texts(ControlTables.restrictions),
        texts(EventLogSchema.claims),
        PartitionGaps.script(integer: "BIGINT"),
    ]

    package static var newest: Int { migrations.count }

    /// Returns 0 for an empty database. Throws `storage`, also for a database of a newer version.
    package static func version(_ settings: PostgreSQLSettings) throws(GatewayError) -> Int {
        try GatewayError.storing { try version(PostgreSQLConnection(settings)) }
    }

    /// Makes texts compare by bytes, as in SQLite, regardless of the database's locale.
    static func texts(_ script: String) -> String {
        script.replacing(" TEXT", with: " TEXT COLLATE \"C\"")
    }

    /// Concurrent calls are serialized. Throws `PostgreSQLError`, and `conflict` for a database of a newer version.
    @discardableResult
    package static func migrate(_ settings: PostgreSQLSettings) throws -> PostgreSQLConnection {
        // Checks without the lock first, because usually no migration is needed.
        do {
            let connection = try PostgreSQLConnection(settings)
            if try version(connection) == migrations.count { return connection }
        }
        let connection = try PostgreSQLConnection(settings.patient)
        try connection.execute("SELECT pg_advisory_lock(\(lockClass), \(AdvisoryLock.migration))")
        let version = try version(connection)
        for number in version..<max(version, migrations.count) {
            try connection.transaction {
                try connection.execute(number == 0 ? first + migrations[0] : migrations[number])
                try connection.run(
                    "INSERT INTO schema_version VALUES (?1, now(), ?2)", .integer(Int64(number + 1)),
                    .text(countersignVersion))
            }
        }
        try EventPartitions.make(connection)
        try connection.execute("SELECT pg_advisory_unlock(\(lockClass), \(AdvisoryLock.migration))")
        return try PostgreSQLConnection(settings)
    }

    private static let first = """
        CREATE SCHEMA IF NOT EXISTS countersign;
        CREATE TABLE schema_version (
            version BIGINT PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL, program TEXT NOT NULL);

        """

    /// Returns 0 for an empty database. Throws `conflict` for a database that is not encoded in UTF-8.
    private static func version(_ connection: PostgreSQLConnection) throws -> Int {
        let encoding = connection.serverEncoding
        guard encoding == "UTF8" else {
            throw GatewayError(
                .conflict,
                "the database's encoding is \(encoding), which cannot hold every text; make one in UTF-8: "
                    + "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0")
        }
        let isThere = try connection.first("SELECT to_regclass('countersign.schema_version') IS NOT NULL") {
            $0.int(0) != 0
        }
        guard isThere == true else { return 0 }
        let version = try connection.first("SELECT max(version) FROM schema_version") { $0.int(0) } ?? 0
        guard version <= migrations.count else {
            throw GatewayError(
                .conflict,
                "the database was written by a newer version (schema \(version), this one knows "
                    + "\(migrations.count)); use that version")
        }
        return version
    }
}
